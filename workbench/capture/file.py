"""KernelBench's format in a file or a cell (``Model``, ``get_inputs``, ``get_init_inputs``), or a file of a function and ``get_inputs``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from workbench.capture import importing
from workbench.capture.arguments import python_value
from workbench.capture.captured import Captured
from workbench.capture.collecting import Collector
from workbench.capture.entry import Call, capture
from workbench.capture.finishing import Written, finish
from workbench.capture.references import MODEL_SEED, Reference, describe, flatten, load_text
from workbench.capture.source import lookup_in, module_names
from workbench.capture.text import Entry, write
from workbench.errors import CaptureError
from workbench.records import digest
from workbench.task import Precision, Role


def capture_file(path: str | Path, *, target: str | None = None, precision: Precision = "match") -> Captured:
    """Captures a reference file.

    Args:
        path: a module that defines ``Model``, ``get_inputs`` and ``get_init_inputs`` (KernelBench's format), or one function and
            ``get_inputs``. Its text is run here, in an empty namespace.

    Raises:
        CaptureError: the file can't be read or run, or has neither form.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaptureError(f"{path} can't be read: {describe(error)}") from None
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        raise CaptureError(f"{path} is not Python: {error.msg} (line {error.lineno})") from None
    if is_model_text(tree):
        return capture_model_text(text, {}, name=path.stem, target=target, precision=precision)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith(("get_", "_"))]
    if "get_inputs" not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} or not functions:
        raise CaptureError(f"{path} must define class Model, get_inputs and get_init_inputs, or one function and get_inputs")
    namespace = load_text(text, f"workbench_reference_{digest(text)}_file")
    with torch.random.fork_rng():
        torch.manual_seed(MODEL_SEED)  # the same file is the same Task, so that a judging of it can be seen again
        inputs = _call(path.stem, namespace["get_inputs"], "get_inputs")
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    return capture(Call(namespace[functions[-1]], args, {}).look(), target=target, precision=precision)


def is_model_text(tree: ast.Module) -> bool:
    """Whether a module's text is in KernelBench's format."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return "Model" in classes and "get_inputs" in functions


def capture_model_text(text: str, namespace: Mapping[str, Any], *, name: str | None, target: str | None, precision: Precision) -> Captured:
    """Captures a text in KernelBench's format; what it reads from the notebook's `namespace` is put before it.

    Raises:
        CaptureError: as everywhere, in one line.
    """
    name = name or "Model"
    reference_text = _complete(text, namespace)
    globals_ = load_text(reference_text, f"workbench_reference_{digest(reference_text)}")
    given, init_args = _init_args(name, globals_)
    with torch.random.fork_rng():
        torch.manual_seed(MODEL_SEED)
        model = _call(name, lambda: globals_["Model"](*given), "Model(*get_init_inputs())")
        if not isinstance(model, torch.nn.Module):
            raise CaptureError(f"{name}: class Model must be an nn.Module")
        drawn = _call(name, globals_["get_inputs"], "get_inputs")
    args = tuple(drawn) if isinstance(drawn, (tuple, list)) else (drawn,)
    call = Call(model, args, {}, name).look()
    free = _state(model)
    written = Written(
        "Model",
        reference_text,
        _leaves(name, model, args),
        lambda values: flatten(model(*values)),
        format="model",
        init_args=init_args,
        reference=Reference(model, globals_, model),
        traced=lambda *values: _stateful(model, values, free),
        free={key: value for key, (_, value) in free.items()},
    )
    return finish(written, call, name=name, target=target, precision=precision)


def _stateful(model: torch.nn.Module, values: tuple[Any, ...], free: Mapping[str, tuple[str, torch.Tensor]]) -> Any:
    if not free:
        return model(*values)
    *inputs, state = values
    return torch.func.functional_call(model, {target: state[key] for key, (target, _) in free.items()}, tuple(inputs))


def _state(model: torch.nn.Module) -> dict[str, tuple[str, torch.Tensor]]:
    """Parameters and buffers by a name that is an identifier."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {target.replace(".", "_"): (target, value) for target, value in named}


def _complete(text: str, namespace: Mapping[str, Any]) -> str:
    """The text with what it reads from elsewhere in the notebook before it; as it is where it reads nothing."""
    collector = Collector()
    needs = []
    for free in module_names(text):
        try:
            value = lookup_in(namespace, free)
        except NameError:
            continue  # if it is ever reached, running the text will say so
        if not importing.is_builtin(free, value) and not free.startswith("__"):
            needs.append((free, collector.add(free, value, "Model")))
    if not needs:
        return text
    if collector.modules or collector.tensors():
        name = next(iter(collector.modules), None) or collector.tensors()[0].wanted
        raise CaptureError(f"Model reads {name} from the notebook: make it in Model.__init__")
    before, _ = write(collector, Entry("Model", None, (), ()))
    before = before[: before.index("\n\ndef Model(")].rstrip()
    return f"{before}\n\n\n{text}"


def _init_args(name: str, namespace: Mapping[str, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """What a Model is constructed with: as its text gives it, and as a Task holds it, lists as tuples."""
    given = list(_call(name, namespace["get_init_inputs"], "get_init_inputs")) if "get_init_inputs" in namespace else []
    for place, value in enumerate(given):
        if value is not None and python_value(value) is None:
            kind = type(value).__qualname__
            raise CaptureError(f"{name}: get_init_inputs returns a {kind} at {place}: return numbers, strings, booleans and lists of them")
    return given, tuple(python_value(value) for value in given)


def _leaves(name: str, model: torch.nn.Module, args: tuple[Any, ...]) -> list[tuple[str, Any, Role]]:
    try:
        bound = inspect.signature(model.forward).bind(*args)
    except TypeError as error:
        raise CaptureError(f"{name}: what get_inputs returns doesn't fit Model.forward: {error}") from None
    leaves: list[tuple[str, Any, Role]] = []
    for key, value in bound.arguments.items():
        several = bound.signature.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL
        for place, item in enumerate(value if several else (value,)):
            leaf = f"{key}_{place}" if several else key
            if not isinstance(item, torch.Tensor) and item is not None and python_value(item) is None:
                raise CaptureError(f"{name}: get_inputs returns a {type(item).__qualname__} for {leaf}: return tensors and plain values")
            leaves.append((leaf, item if isinstance(item, torch.Tensor) else python_value(item), "input"))
    return leaves


def _call(name: str, function: Any, what: str) -> Any:
    try:
        return function()
    except Exception as error:
        filename = getattr(getattr(function, "__code__", None), "co_filename", None)
        raise CaptureError(f"{name}: {what} raises {describe(error, filename)}") from error
