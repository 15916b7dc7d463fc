"""What an accepted op gives back: its results in the reference's own container, and the arguments that it changed themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.errors import MisuseError
from workbench.task import Task


@dataclass(frozen=True)
class Result:
    """What the reference returns.

    Attributes:
        shape: it, with numbers in place of its tensors, and names in place of those that are a changed argument: ``0``, ``(0, "x")``,
            ``{"y": 0, "rest": [1, 2]}``.
        count: how many tensors it has.
        fresh: numbers of those that are new.
    """

    shape: Any
    count: int
    fresh: tuple[int, ...]


def result_of(task: Task) -> Result:
    """What the reference returns, found by a run on fake tensors, which have shapes and no memory.

    Raises:
        MisuseError: a result is a view of an input, which a registered op must not return, or something else than a tensor.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from workbench.capture.references import MODEL_SEED, load_reference

    reference = load_reference(task, seed=MODEL_SEED)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        inputs = [
            torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype)) if spec.is_tensor else spec.values.value
            for spec in task.inputs
        ]
        try:
            value = reference.call(*inputs)
        except Exception as error:
            if len(task.outputs) == 1 and not task.changes:  # one output is nearly always a plain tensor
                return Result(0, 1, (0,))
            raise MisuseError(f"what {task.name} returns can't be told apart without data ({type(error).__name__}: {error})") from None
    changed = {_place_of(inputs[at]): name for at, name in zip(task.changed_positions, task.changes, strict=True)}
    storages = {tensor.untyped_storage()._cdata for tensor in inputs if isinstance(tensor, torch.Tensor)}
    fresh: list[int] = []
    count = iter(range(len(task.outputs) + 1))

    def number(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            at = next(count)
            if (name := changed.get(_place_of(part))) is not None:
                return name
            if part.untyped_storage()._cdata in storages:
                raise MisuseError(f"{task.name} returns an input or a view of one, which a registered op must not: return the rest only")
            fresh.append(at)
            return at
        if isinstance(part, dict):
            return {key: number(item) for key, item in part.items()}
        if type(part) in (tuple, list):
            return type(part)(number(item) for item in part)
        if part is None:
            return None
        raise MisuseError(f"{task.name} returns a {type(part).__name__}: return tensors in tuples, lists or dicts only")

    return Result(number(value), next(count), tuple(fresh))


def _place_of(tensor: Any) -> tuple[Any, ...]:
    """Equal for tensors that show the same memory in the same way."""
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def rebuild(result: Result) -> str:
    """An expression that puts the new results (``out``) and the changed arguments back into the reference's own structure."""
    return _expression(result.shape, {at: "out" if len(result.fresh) == 1 else f"out[{place}]" for place, at in enumerate(result.fresh)})


def _expression(shape: Any, texts: dict[int, str]) -> str:
    if shape is None or isinstance(shape, str):
        return str(shape)
    if isinstance(shape, int):
        return texts[shape]
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key!r}: {_expression(item, texts)}" for key, item in shape.items()) + "}"
    inner = ", ".join(_expression(item, texts) for item in shape)
    if isinstance(shape, list):
        return f"[{inner}]"
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def flat_function(suffix: str) -> list[str]:
    """``flat``: the tensors of a result, whatever holds them."""
    return [
        f"def flat_{suffix}(value):",
        '    """The tensors of a result, in order."""',
        "    if isinstance(value, torch.Tensor):",
        "        return [value]",
        "    members = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()",
        f"    return [tensor for member in members for tensor in flat_{suffix}(member)]",
        "",
        "",
    ]


def bump(task: Task, indent: str = "    ") -> list[str]:
    """Tells autograd of the changes: a kernel writes through a pointer, and a backward pass that needs the old values must know."""
    return [f"{indent}torch.autograd.graph.increment_version({name})" for name in task.changes]


__all__ = ["Result", "bump", "flat_function", "rebuild", "result_of"]
