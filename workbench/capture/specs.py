"""From a real tensor to an input spec: shape, dtype, strides, and values drawn like it.

Statistics come from a sample of at most `SAMPLE` elements, so that describing a tensor costs milliseconds whatever its size. Only integer
tensors are read whole, for their exact range: an index one too large would crash the op.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import torch

from workbench.errors import CaptureError
from workbench.task import ITEM_BYTES, InputSpec, Role, Values

SAMPLE = 1 << 15
"""Elements that the statistics of one tensor are taken from."""
WHOLE = 1 << 22
"""Elements up to which a matrix is read whole to confirm that it is triangular, or its rows one-hot."""
UNNAMED = "the input "
"""How notes begin that are made before the input's name is known."""
CONTENT = 1 << 16
"""Bytes up to which the content of a tensor may be part of a Task."""
LINES = 64
"""Rows that are read to see whether each sums to one, or is a permutation."""


def describe_tensor(
    name: str, tensor: torch.Tensor, role: Role = "input", described: tuple[Values, tuple[str, ...]] | None = None
) -> tuple[InputSpec, tuple[str, ...]]:
    """The spec of a live tensor, and notes on what the drawn values will not reproduce.

    Args:
        described: what `describe_values` said of it earlier, before something wrote to it.

    Raises:
        CaptureError: the dtype, layout or subclass can't be drawn.
    """
    check_tensor(name, tensor)
    values, notes = described or describe_values(tensor.detach())
    notes = tuple(note.replace(UNNAMED, f"input {name} ", 1) for note in notes)
    spec = InputSpec(name, tuple(tensor.shape), dtype_name(tensor.dtype), tuple(tensor.stride()), values, role)
    return spec, notes


def describe_scalar(name: str, value: Any) -> InputSpec:
    """The spec of a Python value that goes to the op as it is."""
    return InputSpec(name, (), "python", (), Values("scalar", value=value))


def content(tensor: torch.Tensor) -> Values:
    """The tensor itself, where no distribution describes it."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return Values("bytes", {}, base64.b64encode(flat.view(torch.uint8).numpy().tobytes()).decode())


def version_of(value: Any) -> int:
    """Counts the writes to a tensor; 0 where torch doesn't count them, and for what is no tensor."""
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.float32`` as ``"float32"``."""
    return str(dtype).removeprefix("torch.")


def check_tensor(name: str, tensor: torch.Tensor, what: str = "input") -> None:
    """Refuses what a Task can't hold, in one line.

    Raises:
        CaptureError: complex, quantized, sparse, nested, meta or unknown dtype.
    """
    if tensor.is_quantized:
        raise CaptureError(f"{what} {name} is quantized: dequantize it first")
    if tensor.is_nested:
        raise CaptureError(f"{what} {name} is a nested tensor: pass a padded or packed dense tensor")
    if tensor.layout is not torch.strided:
        raise CaptureError(f"{what} {name} is {dtype_name(tensor.layout)}: pass a dense tensor (.to_dense())")
    if tensor.dtype.is_complex:
        raise CaptureError(f"{what} {name} is {dtype_name(tensor.dtype)}: complex numbers can't be judged yet; use torch.view_as_real")
    if dtype_name(tensor.dtype) not in ITEM_BYTES:
        raise CaptureError(f"{what} {name} has dtype {dtype_name(tensor.dtype)}: use one of {', '.join(ITEM_BYTES)}")
    if tensor.device.type == "meta":
        raise CaptureError(f"{what} {name} is on the meta device and has no values: move it to a real device")


def describe_values(tensor: torch.Tensor) -> tuple[Values, tuple[str, ...]]:
    """How values like the tensor's are drawn, never neutral ones: a weight of all ones would hide that a kernel ignores it."""
    notes: tuple[str, ...] = ()
    if tensor.numel() == 0:
        values = Values("normal" if tensor.is_floating_point() else "integers", {"lo": 0, "hi": 1})
    elif tensor.dtype is torch.bool:
        p = sample(tensor).float().mean().item()
        values = Values("mask", {"p": _round(p) if 0 < p < 1 else 0.5})
    else:
        values, notes = (_describe_floats if tensor.is_floating_point() else _describe_integers)(tensor)
    return Values(values.kind, {key: float(value) for key, value in values.args.items()}, values.value), notes


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """At most `SAMPLE` elements, one-dimensional: all of a small tensor, else random ones, the same at every call."""
    # A dimension of stride 0 repeats one element: look at it once.
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    if tensor.numel() <= SAMPLE:
        return tensor.reshape(-1)
    generator = torch.Generator().manual_seed(0)
    index = [torch.randint(size, (SAMPLE,), generator=generator).to(tensor.device) for size in tensor.shape]
    return tensor[tuple(index)] if tensor.element_size() > 1 else tensor.view(torch.uint8)[tuple(index)].view(tensor.dtype)


def _describe_integers(tensor: torch.Tensor) -> tuple[Values, tuple[str, ...]]:
    low, high = (int(bound) for bound in torch.aminmax(tensor))
    size = tensor.shape[-1] if tensor.dim() else 0
    if low == 0 and high == size - 1 and size > 1:
        rows = _lines(tensor, -1)
        if torch.equal(rows.sort(dim=-1).values, torch.arange(size, device=rows.device, dtype=rows.dtype).expand_as(rows)):
            return Values("permutation"), ()
    if (low, high) == (0, 1) and tensor.dim() >= 2:
        dim = _sums_to_one(tensor, exact=True)
        if dim is not None:
            return Values("one_hot", {"dim": dim}), ()
    notes: tuple[str, ...] = ()
    if low == high and tensor.numel() > 1:
        notes = (f"{UNNAMED}is {low} everywhere, and stays so: other values might not be valid for the op",)
    elif tensor.dim() == 1 and size > 2 and bool((tensor[1:] >= tensor[:-1]).all()):
        # Offsets: any other draw would not be valid for the op.
        if tensor.numel() * tensor.element_size() <= CONTENT:
            return content(tensor), (f"{UNNAMED}is sorted, like offsets: its content itself is part of the task, the same for every seed",)
        notes = (f"{UNNAMED}is sorted; the values drawn for it are not",)
    return Values("integers", {"lo": low, "hi": high + 1}), notes


def _describe_floats(tensor: torch.Tensor) -> tuple[Values, tuple[str, ...]]:
    values = sample(tensor).double() if tensor.dtype is torch.float64 else sample(tensor).float()
    notes: list[str] = []
    nans = int(values.isnan().sum())
    if nans:
        notes.append(f"{UNNAMED}holds NaN; the values drawn for it do not")
        values = values[~values.isnan()]
    if values.numel() == 0:
        return Values("normal", {"mean": 0.0, "std": 1.0}), tuple(notes)
    levels = values.unique()
    if levels.numel() == 2:
        return _describe_two_levels(tensor, values, levels), tuple(notes)
    if levels.isinf().any():
        notes.append(f"{UNNAMED}holds infinities; the values drawn for it do not")
        values = values[values.isfinite()]
        if values.numel() == 0:
            return Values("normal", {"mean": 0.0, "std": 1.0}), tuple(notes)
    mean, std = values.mean().item(), values.std(correction=0).item()
    low, high = values.min().item(), values.max().item()
    if std <= 1e-6 * max(abs(mean), 1e-30):
        return _around(mean), tuple(notes)
    triangle = _triangle(tensor)
    if triangle is not None:
        kept = values[values != 0]
        spread = _round(kept.std(correction=0).item())
        return Values("triangular", {"lower": triangle, "mean": _round(kept.mean().item()), "std": spread}), tuple(notes)
    if low >= 0 and high <= 1:
        dim = _sums_to_one(tensor)
        if dim is not None:
            return Values("probabilities", {"dim": dim}), tuple(notes)
    if values.numel() >= 32:
        kurtosis = ((values - mean) / std).pow(4).mean().item()
        if kurtosis < 2.1 and (high - low) / std < 3.7:  # of a uniform distribution: 1.8 and the root of 12
            return Values("uniform", _snap(low, high)), tuple(notes)
    if low >= 0 and (low == 0 or mean < 5 * std):
        return Values("positive", {"scale": _round(mean / math.sqrt(2 / math.pi))}), tuple(notes)
    return Values("normal", {"mean": _centre(mean, std), "std": _round(std)}), tuple(notes)


def _describe_two_levels(tensor: torch.Tensor, values: torch.Tensor, levels: torch.Tensor) -> Values:
    low, high = levels.tolist()
    if (low, high) == (0.0, 1.0) and tensor.dim() >= 1:
        dim = _sums_to_one(tensor, exact=True)
        if dim is not None:
            return Values("one_hot", {"dim": dim})
    finite = math.isfinite(low) and math.isfinite(high)
    if finite and (low, high) != (0.0, 1.0) and tensor.numel() < 8:  # too few to call it a mask
        middle, spread = (low + high) / 2, (high - low) / 2
        return _around(middle) if low * high > 0 else Values("normal", {"mean": _round(middle), "std": _round(spread)})
    triangle = _triangle(tensor) if 0.0 in (low, high) and finite else None
    if triangle is not None and (low, high) != (0.0, 1.0):
        return Values("triangular", {"lower": triangle, "mean": _round(low + high), "std": _round(abs(low + high) / 2)})
    return _mask(values, low, high)


def _mask(values: torch.Tensor, low: float, high: float) -> Values:
    # An additive mask is "on" where it lets through, at 0; any other pair of levels is on at the higher one.
    on, off = (low, high) if low == 0 and high > 1 and math.isinf(high) else (high, low)
    p = _round((values == on).float().mean().item())
    p = min(max(p, 0.01), 0.99)
    return Values("mask", {"p": p}) if (on, off) == (1.0, 0.0) else Values("mask", {"p": p, "on": on, "off": off})


def _around(value: float) -> Values:
    """Values around a constant, of its sign (a running variance of ones must stay positive), and never the constant alone."""
    if value == 0 or not math.isfinite(value):
        return Values("normal", {"mean": 0.0, "std": 0.5})
    return Values("uniform", {"lo": _round(min(0.5 * value, 1.5 * value)), "hi": _round(max(0.5 * value, 1.5 * value))})


def _lines(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """At most `LINES` lines along `dim`, as the rows of a matrix; the first, the last and random ones."""
    lines = tensor.movedim(dim, -1)
    size = lines.shape[-1]
    outer = lines.shape[:-1]
    count = math.prod(outer)
    if count <= LINES:
        return lines.reshape(count, size)
    generator = torch.Generator().manual_seed(0)
    picked = torch.cat([torch.tensor([0, count - 1]), torch.randint(count, (LINES - 2,), generator=generator)]).to(tensor.device)
    index = []
    for extent in reversed(outer):
        index.append(picked % extent)
        picked = picked // extent
    return lines[tuple(reversed(index))]


def _sums_to_one(tensor: torch.Tensor, exact: bool = False) -> int | None:
    """The dimension (from the end) along which non-negative values sum to one; None where there is none."""
    tolerance = 0.0 if exact else 5e-2 if tensor.element_size() < 4 else 1e-3
    for dim in range(-1, -tensor.dim() - 1, -1):
        if tensor.shape[dim] < 2:
            continue
        lines = _lines(tensor, dim).float()
        if not bool(((lines.sum(dim=-1) - 1).abs() <= tolerance).all()) or bool((lines < 0).any()):
            continue
        if not exact or tensor.numel() > WHOLE or bool((tensor.float().sum(dim=dim) == 1).all()):
            return dim
    return None


def _triangle(tensor: torch.Tensor) -> int | None:
    """1 for matrices whose upper triangle is zero, 0 for those whose lower one is, None for others."""
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2 or tensor.element_size() < 2:
        return None
    matrix = tensor[(0,) * (tensor.dim() - 2)]
    corner = matrix[:64, :64]
    for lower in (1, 0):

        def same(part: torch.Tensor, lower: int = lower) -> bool:
            kept = part.tril() if lower else part.triu()
            return torch.equal(kept, part) and bool(kept.any())

        if same(corner) and same(matrix[:2048, :2048]):
            return lower
    return None


def _snap(low: float, high: float) -> dict[str, float]:
    """The bounds of a uniform distribution, rounded to what was probably meant: 0.0001 … 0.9998 is 0 … 1."""
    spread = high - low
    digits = 1 - math.floor(math.log10(spread))
    near = {"lo": round(low, digits - 1), "hi": round(high, digits - 1)}
    if abs(near["lo"] - low) < 0.01 * spread and abs(near["hi"] - high) < 0.01 * spread and (low < 0 or near["lo"] >= 0):
        return near
    return {"lo": low, "hi": high}


def _centre(mean: float, std: float) -> float:
    return 0.0 if abs(mean) < 0.02 * std else _round(mean)


def _round(value: float) -> float:
    """Three significant digits: the rest is the sample's luck."""
    return float(f"{value:.3g}")
