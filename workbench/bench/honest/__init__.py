"""Honest kernels, and dishonest ones, in PyTorch's own words: what the judge's constants are calibrated on.

`sums` has the ways in which a kernel may add up; `pointwise`, `rows` and `products` are ops with the ways to compute them. Each way
computes as a GPU kernel would (accumulates in single precision in some order, rounds to the output's dtype at the end), only slower.
"""
