"""A Task's reference, brought to life: from text to a callable. Capture, judge and worker all load it here."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from workbench.errors import CaptureError
from workbench.records import digest, encode
from workbench.task import Task

MODEL_SEED = 0
"""The seed that capture constructs a Model with; who compares with its probe constructs it alike."""


def flatten(value: Any) -> list[torch.Tensor]:
    """The tensors in what an op returned, in one order: tuples and lists by position, dicts as they were filled; the rest is dropped.

    >>> [tuple(t.shape) for t in flatten({"a": torch.ones(2), "b": (None, torch.ones(3))})]
    [(2,), (3,)]
    """
    return list(_tensors(value))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


@dataclass(frozen=True)
class Reference:
    """A reference that can be called with the Task's inputs in order and gives its outputs as a flat list.

    It leaves the mode of autograd as it is: who judges calls it under ``torch.no_grad()``.

    Attributes:
        call: the function, or the constructed Model.
        namespace: the module text's globals.
        module: the Model, None for a function; its parameters can be reloaded by ``load_state_dict``.
        changes: positions of the inputs that it writes to; they come after its outputs.
        random: the op in it that draws random numbers, empty where none does.
        products: whether it multiplies matrices.
    """

    call: Any
    namespace: Mapping[str, Any]
    module: torch.nn.Module | None = None
    changes: tuple[int, ...] = ()
    random: str = ""
    products: bool = False

    def __call__(self, *inputs: Any) -> list[torch.Tensor]:
        return with_changed(self.call, self.changes)(*inputs)


def with_changed(call: Callable[..., Any], changes: Sequence[int]) -> Callable[..., list[torch.Tensor]]:
    """The call with a flat result: its outputs, and behind them the inputs at the positions that it writes to."""

    def called(*inputs: Any) -> list[torch.Tensor]:
        outputs = flatten(call(*inputs))
        return [*outputs, *(inputs[position] for position in changes)]

    return called


def load_reference(task: Task, *, device: str | None = None, seed: int | None = None) -> Reference:
    """Runs the reference's text in an empty namespace and picks its entry.

    A Model is constructed with what its ``get_init_inputs`` returns (the Task's `init_args` where it has none), after
    ``torch.manual_seed(seed)`` if a seed is given (the caller's random state is kept), and moved to `device` if one is given.

    Raises:
        CaptureError: the text raises, or doesn't define its entry.
    """
    namespace = load_text(task.reference, f"workbench_reference_{digest(task.reference)}")
    if task.entry not in namespace:
        raise CaptureError(f"the reference of {task.name} doesn't define {task.entry}")
    entry = namespace[task.entry]
    changes, products = task.changed_positions, task.work.matmul_flops > 0
    if task.format != "model":
        return Reference(entry, namespace, changes=changes, random=task.random, products=products)
    with torch.random.fork_rng(enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        given = namespace.get("get_init_inputs")
        # JSON makes tuples of lists, and a Model may want the lists that its own text gives it.
        module = entry(*(given() if callable(given) else task.init_args))
    if device is not None:
        module = module.to(device)
    return Reference(module, namespace, module, changes, task.random, products)


def fingerprint(output: torch.Tensor, count: int = 64) -> dict[str, Any]:
    """An output in short, as JSON data: shape, dtype, sum and sum of magnitudes in double, and `count` elements.

    The k-th element of ``sample`` is the one at position ``k * numel // count`` of the flattened tensor.
    """
    flat = output.detach().reshape(-1)
    if flat.element_size() == 1:
        flat = flat.float()  # the 8-bit floats have few operations of their own
    count = min(count, flat.numel())
    places = torch.tensor([place * flat.numel() // max(count, 1) for place in range(count)], dtype=torch.int64, device=flat.device)
    return {
        "shape": list(output.shape),
        "dtype": str(output.dtype).removeprefix("torch."),
        "sum": encode(flat.sum(dtype=torch.float64).item()),
        "abs_sum": encode(flat.abs().sum(dtype=torch.float64).item()),
        "sample": encode(flat[places].double().tolist()),
    }


def load_text(text: str, name: str) -> dict[str, Any]:
    """Runs a module text as the module `name` and returns its globals.

    The module is entered in `sys.modules`, where dataclasses and torch.compile look for it, and its lines in `linecache`, where
    tracebacks, `inspect` and triton.jit do.
    """
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = types.ModuleType(name)
    module.__file__ = filename
    sys.modules[name] = module
    try:
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        raise CaptureError(f"the reference doesn't run in an empty namespace: {describe(error, filename)}") from error
    return module.__dict__


def describe(error: BaseException, filename: str | None = None) -> str:
    """An exception in one line: its name, its first line, and the last line of `filename` that it passed through."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if filename is not None and traceback.tb_frame.f_code.co_filename == filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return f"{text} (line {line})" if line is not None else text
