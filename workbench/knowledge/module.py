"""Puts a candidate's module together: docstring, imports, TUNE, helper functions, kernels, launcher."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.knowledge.emit import HELPERS
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.models import model_class
from workbench.knowledge.scope import Needs
from workbench.task import Task

WIDTH = 110


@dataclass
class Kernel:
    """One ``@triton.jit`` function and its launch.

    Attributes:
        parameters: (name in the kernel, what the launcher passes), pointers and sizes in order.
        constants: the same for ``tl.constexpr`` parameters.
        grid: text of the grid tuple.
        options: keyword arguments of the launch, such as num_warps.
    """

    name: str
    doc: str
    grid: str
    parameters: list[tuple[str, str]] = field(default_factory=list)
    constants: list[tuple[str, str]] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)

    def definition(self) -> str:
        names = [name for name, _ in self.parameters] + [f"{name}: tl.constexpr" for name, _ in self.constants]
        doc = textwrap.fill(self.doc, WIDTH - 8)
        lines = ["@triton.jit", *call_lines(f"def {self.name}(", names, "):")]
        lines += [f'    """{doc}"""'.replace("\n", "\n    ")]
        return "\n".join(lines + [f"    {line}" if line else "" for line in self.body])

    def launch(self) -> list[str]:
        passed = [value for _, value in self.parameters]
        passed += [f"{name}={value}" for name, value in (*self.constants, *self.options.items())]
        return call_lines(f"{self.name}[{self.grid}](", passed, ")")


def call_lines(head: str, parts: Sequence[str], tail: str) -> list[str]:
    """A call or definition on one line, or its parts on indented lines of their own where it is too long."""
    one = f"{head}{', '.join(parts)}{tail}"
    if len(one) <= WIDTH:
        return [one]
    return [
        head,
        *textwrap.wrap(", ".join(parts) + ",", WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False),
        tail,
    ]


def assemble(
    task: Task, title: str, tune: Mapping[str, Sequence[Any]], kernels: Sequence[Kernel], launcher: Launcher, results: Sequence[str],
    needs: Needs,
) -> str:  # fmt: skip
    """The module's text."""
    blocks = [HELPERS[name].strip() for name in sorted(needs.helpers)]
    blocks += [kernel.definition() for kernel in kernels]
    imports = ["from triton.language.extra import libdevice"] if needs.libdevice else []
    return assemble_blocks(task, title, tune, blocks, launcher.lines, launcher.parameters, results, imports)


def assemble_blocks(
    task: Task, title: str, tune: Mapping[str, Sequence[Any]], blocks: Sequence[str], lines: Sequence[str], own: Sequence[str],
    results: Sequence[str], imports: Sequence[str] = (),
) -> str:  # fmt: skip
    """The module's text from that of its functions.

    Args:
        blocks: functions that come before the launcher.
        lines: the launcher's body, up to its return; `own` are its parameters after the task's.
    """
    is_model = task.format == "model"
    name = forward_name(task) if is_model else task.candidate_entry
    model = model_class(task, name, own) if is_model else None
    parts = [f'"""{textwrap.fill(title, WIDTH)}"""', _imports(model.imports if model else (), imports)]
    blocks = list(blocks)
    if tune:
        parts.append("\n".join(["TUNE = {", *(f'    "{name}": {list(values)},' for name, values in tune.items()), "}"]))
    returned = results[0] if len(results) == 1 else ", ".join(results)
    signature = ", ".join([*(spec.name for spec in task.inputs), *own])
    blocks.append("\n".join([f"def {name}({signature}):", *(f"    {line}" for line in [*lines, f"return {returned}"])]))
    if model:
        blocks += [*model.needed, model.text]
    return "\n\n".join(parts) + "\n\n\n" + "\n\n\n".join(blocks) + "\n"


def kernel_name(task: Task, suffix: str = "") -> str:
    """A name for a kernel of this op."""
    base = re.sub(r"\W+", "_", (task.name if task.format == "model" else task.entry)).strip("_").lower() or "op"
    base = base if base[0].isalpha() or base[0] == "_" else f"op_{base}"
    return f"{base}_{suffix}kernel" if not suffix else f"{base}_{suffix}_kernel"


def forward_name(task: Task) -> str:
    """A name for what a model's ``forward`` calls."""
    return kernel_name(task).removesuffix("_kernel") + "_forward"


def _imports(more: Sequence[str], last: Sequence[str]) -> str:
    lines = ["import torch", *more, "import triton", "import triton.language as tl", *last]
    return "\n".join(dict.fromkeys(lines))
