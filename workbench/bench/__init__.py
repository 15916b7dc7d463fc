"""Benchmarks that print a table, and give the figures as data."""
