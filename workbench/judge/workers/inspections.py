"""Inspections inside a worker: each answers with the data of one tab. It is a claim like everything that a worker says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.inputs import make_inputs
from workbench.records import decode, encode
from workbench.task import InputSpec

if TYPE_CHECKING:
    from workbench.judge.workers.worker import Driver


def inspect(driver: Driver, *, what: str, inputs: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, Any]:
    """Carries out ``do_inspect``.

    Args:
        driver: with a candidate or the reference loaded, but for ``compiler``, which loads it itself.
        what: ``compiler``, ``memory``, ``trace`` or ``counters``.
        inputs: specs of the arguments.
        options: of that inspection.
    """
    specs = tuple(decode(InputSpec, item) for item in inputs)
    looks: dict[str, Callable[..., dict[str, Any]]] = {"compiler": _compiler, "memory": _memory, "trace": _trace, "counters": _counters}
    return looks[what](driver, specs, **options)


def _compiler(driver: Driver, specs: tuple[InputSpec, ...], **order: Any) -> dict[str, Any]:
    from workbench.judge.inspection.compiler import NotCompiled, compiled

    try:
        return {"report": encode(compiled(specs=specs, target=driver.target, directory=driver.path.parent, **order))}
    except NotCompiled as reason:
        return {"none": str(reason)}


def _memory(driver: Driver, specs: tuple[InputSpec, ...], *, shapes: str, seed: int) -> dict[str, Any]:
    from workbench.judge.inspection.memory import watched
    from workbench.judge.recording.untouched import make_untouched

    assert driver.function is not None, "load a candidate first"
    arguments = make_untouched(specs) if shapes == "real" else make_inputs(specs, seed, "cpu")
    shown = [f"{spec.name} {'×'.join(map(str, spec.shape))} {spec.dtype}" for spec in specs if spec.is_tensor]
    return {"report": encode(watched(driver.function, arguments, driver.path, shapes=shapes, shown=shown))}


def _trace(driver: Driver, specs: tuple[InputSpec, ...], *, seed: int) -> dict[str, Any]:
    from workbench.judge.inspection.traces import profiled

    assert driver.function is not None, "load a candidate first"
    return {"events": profiled(driver.function, make_inputs(specs, seed, driver.device), device=driver.device)}


def _counters(driver: Driver, specs: tuple[InputSpec, ...], *, seed: int) -> dict[str, Any]:
    from workbench.judge.inspection.traces import called_once

    assert driver.function is not None, "load a candidate first"
    called_once(driver.function, make_inputs(specs, seed, driver.device), device=driver.device)
    return {}
