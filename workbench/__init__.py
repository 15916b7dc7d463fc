"""Kernel Workbench: make GPU kernels fast from inside a notebook.

>>> import workbench                                   # doctest: +SKIP
>>> run = workbench.evolve(softmax, x)                 # doctest: +SKIP
>>> run.auto().wait()                                  # doctest: +SKIP
>>> run.best                                           # doctest: +SKIP
"""

from __future__ import annotations
