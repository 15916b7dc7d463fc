"""Own functions in the place of those that Inductor's kernels call, each with those that it needs itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.knowledge.axes import UnsupportedError

_JIT = "@triton.jit\n"

TEXTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "maximum": ('''\
def maximum(a, b):
    """The larger one; NaN wins."""
    return tl.where((a > b) | (a != a), a, b)
''', ()),
    "minimum": ('''\
def minimum(a, b):
    """The smaller one; NaN wins."""
    return tl.where((a < b) | (a != a), a, b)
''', ()),
    "max2": ("def max2(values, dim):\n    return tl.reduce(values, dim, maximum)\n", ("maximum",)),
    "min2": ("def min2(values, dim):\n    return tl.reduce(values, dim, minimum)\n", ("minimum",)),
    "either": ("def either(a, b):\n    return a | b\n", ()),
    "any": ("def any_of(values, dim):\n    return tl.reduce(values, dim, either)\n", ("either",)),
    "times": ("def times(a, b):\n    return a * b\n", ()),
    "prod": ("def prod(values, dim):\n    return tl.reduce(values, dim, times)\n", ("times",)),
    "maximum_with_index": ('''\
def maximum_with_index(a, a_index, b, b_index):
    """The larger value with its index; NaN wins, and among equals the smaller index."""
    first = (a > b) | ((a != a) & (b == b))
    first = first | (((a == b) | ((a != a) & (b != b))) & (a_index < b_index))
    return tl.where(first, a, b), tl.where(first, a_index, b_index)
''', ()),
    "minimum_with_index": ('''\
def minimum_with_index(a, a_index, b, b_index):
    """The smaller value with its index; NaN wins, and among equals the smaller index."""
    first = (a < b) | ((a != a) & (b == b))
    first = first | (((a == b) | ((a != a) & (b != b))) & (a_index < b_index))
    return tl.where(first, a, b), tl.where(first, a_index, b_index)
''', ()),
    "max_with_index": (
        "def max_with_index(values, indices, dim):\n    return tl.reduce((values, indices), dim, maximum_with_index)\n",
        ("maximum_with_index",),
    ),
    "min_with_index": (
        "def min_with_index(values, indices, dim):\n    return tl.reduce((values, indices), dim, minimum_with_index)\n",
        ("minimum_with_index",),
    ),
    "welford_reduce": ('''\
def welford_reduce(value, mean, m2, weight, first):
    """One more value for a running mean and sum of squared deviations, which begin with a weight of 0."""
    delta = value - mean
    grown = weight + 1
    moved = mean + delta / grown
    return moved, m2 + delta * (value - moved), grown
''', ()),
    "welford_combine": ('''\
def welford_combine(mean, m2, weight, other_mean, other_m2, other_weight):
    """Mean, sum of squared deviations and weight of two groups together."""
    delta = tl.where(mean == other_mean, 0.0, other_mean - mean)
    whole = weight + other_weight
    share = tl.where(whole == 0.0, 0.0, other_weight / whole)
    return mean + delta * share, m2 + other_m2 + delta * delta * weight * share, whole
''', ()),
    "welford": (
        "def welford(mean, m2, weight, dim):\n    return tl.reduce((mean, m2, weight), dim, welford_combine)\n", ("welford_combine",),
    ),
    "exp": ("def exp_of(x, fast: tl.constexpr):\n    return tl.exp(x)\n", ()),
    "online_softmax_combine": ('''\
def online_softmax_combine(peak, total, value, fast: tl.constexpr):
    """One more value for a running maximum and the sum of exponentials below it."""
    higher = maximum(peak, value)
    nothing = higher == float("-inf")
    kept = tl.where(nothing, 1.0, tl.exp(peak - higher))
    return higher, total * kept + tl.where(nothing, 1.0, tl.exp(value - higher))
''', ("maximum",)),
    "online_softmax_combine_with_sum": ('''\
def online_softmax_combine_with_sum(peak, total, other_peak, other_total, fast: tl.constexpr):
    """Maxima and sums of exponentials of two groups together."""
    higher = maximum(peak, other_peak)
    nothing = higher == float("-inf")
    kept = tl.where(nothing, 1.0, tl.exp(peak - higher))
    return higher, total * kept + other_total * tl.where(nothing, 1.0, tl.exp(other_peak - higher))
''', ("maximum",)),
    "online_softmax_reduce": ('''\
def online_softmax_reduce(peaks, totals, dim, fast: tl.constexpr):
    """Maximum and sum of exponentials over all lanes."""
    peak = tl.reduce(peaks, dim, maximum)
    wide = tl.expand_dims(peak, dim)
    return peak, tl.sum(totals * tl.exp(tl.where(wide == float("-inf"), 0, peaks - wide)), dim)
''', ("maximum",)),
    "select_one": ('''\
def select_one(values, mask, dim, keep_dims=False):
    """The one value that the mask has."""
    return tl.sum(tl.where(mask, values, 0), dim, keep_dims=keep_dims)
''', ()),
    "div_floor_integer": ('''\
def div_floor_integer(a, b):
    """The quotient, rounded down."""
    quotient = a // b
    return tl.where(((a < 0) != (b < 0)) & (a % b != 0), quotient - 1, quotient)
''', ()),
    "remainder_integer": ('''\
def remainder_integer(a, b):
    """The remainder, with the sign of the divisor."""
    rest = a % b
    return tl.where((rest != 0) & ((a < 0) != (b < 0)), rest + b, rest)
''', ()),
    "promote_to_tensor": ("def promote_to_tensor(x):\n    return x + tl.zeros((1,), tl.int1)\n", ()),
}  # fmt: skip
"""By the name that Inductor calls it: the text, and the helpers that it needs."""


OWN = {"any": "any_of", "exp": "exp_of"}
"""What they are called here, where Python or the kernels have something else of that name."""


def needed(names: Iterable[str]) -> list[str]:
    """The texts of these helpers, each after those that it needs.

    Raises:
        UnsupportedError: one is not among them.
    """
    order: list[str] = []

    def add(name: str) -> None:
        if name not in TEXTS:
            raise UnsupportedError(f"its kernels call Inductor's helper {name}, which has no plain form here")
        for other in TEXTS[name][1]:
            add(other)
        if name not in order:
            order.append(name)

    for name in sorted(names):
        add(name)
    return [f"{_JIT}{TEXTS[name][0]}" for name in order]
