"""Where mismatches lie, in words that point at the mistake: a missing mask, a wrong scale, a tile that nobody wrote."""

from __future__ import annotations

import torch


def describe(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """A few words on the mismatches.

    Args:
        got: the candidate's output; `expected`: the truth, same shape.
        wrong: which elements are out of bounds; empty where the fault is not one of single elements.
    """
    words = [word for word in (_values(got, expected, wrong), _places(wrong) if wrong.numel() else "") if word]
    return ", ".join(words)


def _values(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    chosen = wrong if wrong.numel() else torch.ones_like(got, dtype=torch.bool)
    y, true = got[chosen].double()[: 1 << 20], expected[chosen].double()[: 1 << 20]
    if y.numel() == 0:
        return ""
    if bool(torch.isnan(y).all()) and not bool(torch.isnan(true).any()):
        return "NaN (never written, or read from beside a tensor)"
    finite = torch.isfinite(y) & torch.isfinite(true)
    if bool((~finite).any()):
        share = float((~finite).double().mean())
        return "NaN or infinity" if share > 0.99 else f"NaN or infinity in {share:.0%} of them"
    if bool((y == 0).all()) and bool((true != 0).any()):
        return "zeros"
    if y.numel() < 8:
        return ""
    power = float(true.square().sum())
    slope = float((y * true).sum()) / power if power else 1.0
    left = float((y - slope * true).square().sum())
    off = float((y - true).square().sum())
    if abs(slope - 1) > 1e-9 and left < 0.01 * off:
        return f"every element scaled by {slope:.4g}" if chosen.all() else f"scaled by {slope:.4g}"
    shift = float((y - true).mean())
    if float((y - true - shift).square().sum()) < 0.01 * off:
        return f"shifted by {shift:.4g}"
    if bool((y == y[0]).all()) and not bool((true == true[0]).all()):
        return "one constant"
    return ""


def _places(wrong: torch.Tensor) -> str:
    """Where they lie, along the dimension that says most."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return "every element"
    if count == 1:
        return "one element"
    found = []
    for dim, size in enumerate(wrong.shape):
        if size < 2:
            continue
        others = [d for d in range(wrong.dim()) if d != dim]
        hit = wrong.any(dim=others) if others else wrong
        places = hit.nonzero().reshape(-1)
        if places.numel() == size:
            continue
        first, last, number = int(places[0]), int(places[-1]), places.numel()
        # How much of the slab they fill: a whole missing tile says more than a stray element.
        filled = count / (number * (total // size))
        found.append((filled, -number, _range(dim, size, first, last, number)))
    if found:
        filled, _, words = max(found)
        return words if filled > 0.5 else f"{words} ({count:,} elements)"
    return f"scattered, {count / total:.1%} of the elements"


def _range(dim: int, size: int, first: int, last: int, number: int) -> str:
    if number == 1:
        return f"only index {first} of dim {dim}" if first != size - 1 else f"only the last index of dim {dim}"
    if number == last - first + 1:
        if last == size - 1:
            return f"the last {number} of {size} in dim {dim} (from {first}: a tail or tile that is not covered)"
        return f"the first {number} of {size} in dim {dim}" if first == 0 else f"{first} to {last} of {size} in dim {dim}"
    step = (last - first) // (number - 1)
    if number > 2 and step > 1 and (last - first) == step * (number - 1):
        return f"every {step}th index of dim {dim} from {first}"
    return f"{number} of {size} indices of dim {dim}"
