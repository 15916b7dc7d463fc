"""What ``torch.compile`` generated for the reference: kept in the baseline's worker while it compiles, and turned into a seed by the judge.

The worker sees which tensors the compiler's arguments are, and afterwards reads the generated module's text and the configuration that
each of its kernels runs with. The judge reads that text by `ast` alone (`knowledge.inductor`); the seed is judged like any candidate.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from workbench.knowledge.inductor import Generated, UnsupportedError, turn
from workbench.task import Task

_LOCAL = re.compile(r"L\['(\w+)'\]")


class Watch:
    """Sees what is compiled from now on in this process, which compiles nothing but one reference.

    Args:
        state: the model whose tensors the arguments may be.
    """

    def __init__(self, state: torch.nn.Module | None) -> None:
        self._state = state
        self._graphs: list[tuple[str, ...]] = []
        self._before: set[int] = set()
        self._inside = False
        with contextlib.suppress(ImportError, AttributeError):
            from torch._inductor import compile_fx

            self._compile = compile_fx.compile_fx
            self._before = {id(module) for module in _modules()}
            compile_fx.compile_fx = self._compiling

    def told(self) -> dict[str, Any]:
        """The generated module as plain data: ``code``, ``inputs`` and ``configs``; or ``reason``, why there is none."""
        if len(self._graphs) != 1:
            return {"reason": f"the op is compiled in {len(self._graphs)} parts" if self._graphs else "nothing was compiled"}
        made = [module for module in _modules() if id(module) not in self._before and hasattr(module, "call")]
        # While it chooses templates the compiler loads modules of single kernels, too.
        made = [module for module in made if hasattr(module, "benchmark_compiled_module")] or made
        if len(made) != 1:
            return {"reason": f"{len(made)} modules were generated"}
        text = Path(str(made[0].__file__)).read_text(encoding="utf-8")
        configs = {name: found for name, value in vars(made[0]).items() if (found := _config(value)) is not None}
        return {"code": text, "inputs": list(self._graphs[0]), "configs": configs}

    def _compiling(self, graph: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self._inside:  # with options it calls itself
            return self._compile(graph, inputs, *args, **kwargs)
        self._inside = True
        try:
            self._graphs.append(tuple(self._source(node) for node in graph.graph.nodes if node.op == "placeholder"))
        except Exception as error:  # whatever this version of PyTorch has there: the baseline is compiled all the same
            self._graphs.append((f"unknown:{error}",))
        try:
            return self._compile(graph, inputs, *args, **kwargs)
        finally:
            self._inside = False

    def _source(self, node: Any) -> str:
        """An argument of the reference by its name, or a model's tensor by its path."""
        argument = node.meta.get("grapharg")
        example = getattr(argument, "example", None) if argument is not None else None
        if self._state is not None and isinstance(example, torch.Tensor):
            named = [*self._state.named_parameters(), *self._state.named_buffers()]
            path = next((name for name, tensor in named if tensor is example), "")
            if path:
                return f"state:{path}"
        source = getattr(argument, "source", None)
        name = getattr(source, "name", "")
        name = name() if callable(name) else name
        match = _LOCAL.fullmatch(str(name))
        return f"input:{match[1]}" if match else f"unknown:{name or node.name}"


def seed(task: Task, told: Mapping[str, Any]) -> tuple[str, str]:
    """The candidate's source; or why there is none, in one line."""
    if "code" not in told:
        return "", str(told.get("reason") or "nothing was compiled")
    generated = Generated(
        str(told["code"]), tuple(map(str, told["inputs"])), {str(name): dict(config) for name, config in told["configs"].items()}
    )
    try:
        return turn(generated, task), ""
    except UnsupportedError as error:
        return "", str(error)
    except Exception as error:  # what the next version of Inductor writes costs a seed, and never the judging
        return "", f"its reader does not understand it: {type(error).__name__}: {error}"[:200]


def _modules() -> list[Any]:
    """The modules that Inductor has generated and loaded in this process."""
    found: list[Any] = []
    with contextlib.suppress(ImportError):
        from torch._inductor.codecache import PyCodeCache

        for kept in (getattr(PyCodeCache, "modules", ()), getattr(PyCodeCache, "modules_no_attr", {})):
            found += kept.values() if isinstance(kept, dict) else kept
    found += [module for name, module in list(sys.modules.items()) if "codecache." in name or "torchinductor" in name]
    return list({id(module): module for module in found if getattr(module, "__file__", None)}.values())


def _config(value: Any) -> dict[str, Any] | None:
    """The configuration that a kernel runs with; None for what is no kernel, or one that has not run."""
    made = getattr(value, "launchers", None) or getattr(value, "compile_results", None)
    config = getattr(made[0], "config", None) if isinstance(made, (list, tuple)) and len(made) == 1 else None
    if config is None:
        return None
    plain = {name: number for name, number in config.kwargs.items() if isinstance(number, (int, bool, str))}
    return {**plain, "num_warps": config.num_warps, "num_stages": config.num_stages}
