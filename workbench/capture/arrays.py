"""Arrays of other libraries among an op's arguments: refused in one line that says how they become tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.errors import CaptureError

_MENDS = {
    "numpy": ("a NumPy array", "torch.from_numpy({name})"),
    "jax": ("a JAX array", "torch.from_dlpack({name})"),
    "jaxlib": ("a JAX array", "torch.from_dlpack({name})"),
    "cupy": ("a CuPy array", "torch.from_dlpack({name})"),
    "pandas": ("a pandas object", "torch.from_numpy({name}.to_numpy())"),
    "tensorflow": ("a TensorFlow tensor", "torch.from_dlpack({name})"),
    "mlx": ("an MLX array", "torch.tensor({name})"),
}


def refuse_arrays(label: str, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> None:
    """Raises where an argument is, or holds, another library's array.

    Args:
        label: of the op.
        names: of the positional arguments, as far as they are known.

    Raises:
        CaptureError: with the argument's name and the conversion.
    """
    named = [(names[place] if place < len(names) else "", value) for place, value in enumerate(args)]
    for name, value in (*named, *kwargs.items()):
        found = next((leaf for leaf in _leaves(value) if is_array(leaf)), None)
        if found is None:
            continue
        what, conversion = _MENDS[_library(found)]
        text = conversion.format(name=name or "x")
        raise CaptureError(f"{label} is called with {what}{f' for {name}' if name else ''}: give it a tensor, such as {text}")


def is_array(value: Any) -> bool:
    """Whether a value is an array with a shape of its own, of a library that is not PyTorch. Numbers of NumPy are none."""
    plain = _library(value) in _MENDS and hasattr(value, "shape") and hasattr(value, "__array__")
    return plain and not isinstance(value, type) and not _is_number(value)


def has_array(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether any argument is such an array."""
    return any(is_array(leaf) for value in (*args, *kwargs.values()) for leaf in _leaves(value))


def _is_number(value: Any) -> bool:
    """NumPy's scalars have a shape too, an empty one, and are what they look like: numbers."""
    return type(value).__module__ == "numpy" and type(value).__name__ != "ndarray" and value.shape == ()


def _library(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
