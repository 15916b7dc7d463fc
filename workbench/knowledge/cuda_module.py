"""Puts a CUDA candidate's module together: docstring, imports, TUNE, the CUDA source, the compile function, the launcher."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.knowledge.cuda_emit import INCLUDES, PRELUDE, access_macros, c_type
from workbench.knowledge.cuda_idiom import HEADERS
from workbench.knowledge.cuda_row_text import EXTREME
from workbench.knowledge.launcher import Launcher
from workbench.knowledge.models import model_class
from workbench.knowledge.module import WIDTH, call_lines, forward_name
from workbench.task import Task

COMPILE = '''\
@functools.cache
def kernel(name, device, *macros):
    """One kernel, compiled for the current GPU and these numbers at its first launch."""
    headers()
    return torch.cuda._compile_kernel(CUDA, name, nvcc_options=[f"-D{macro}" for macro in macros])
'''

WIDEST = '''\
def widest(most, length, *tensors):
    """Elements that a thread can move at once: their number divides the length, and every address is a multiple of their size."""
    while most > 1 and (length % most or any(t.data_ptr() % min(16, most * t.element_size()) for t in tensors)):
        most //= 2
    return most
'''

CEIL = """\
def ceil_div(number, step):
    return -(-number // step)
"""


@dataclass
class CudaKernel:
    """One ``__global__`` function and its launch.

    Attributes:
        parameters: (declaration without the name, name, what the launcher passes).
        macros: (name, what the launcher puts there, a value with which the source compiles by itself).
        attributes: what the function's declaration has beside its bounds.
        grid, block: texts of the launch's sizes on the first axis, and of the block's two axes.
    """

    name: str
    doc: str
    bounds: str
    grid: str
    block: tuple[str, str]
    parameters: list[tuple[str, str, str]] = field(default_factory=list)
    macros: list[tuple[str, str, int]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    attributes: str = ""

    def definition(self) -> str:
        # A declaration is never broken in itself.
        names = [f"{kind} {name}".replace(" ", "\0") for kind, name, _ in self.parameters]
        attributes = f"{self.attributes} " if self.attributes else ""
        head = f'extern "C" __global__ void __launch_bounds__({self.bounds}) {attributes}{self.name}('
        lines = [f"// {line}" for line in textwrap.wrap(self.doc, WIDTH - 3)]
        lines += [line.replace("\0", " ") for line in call_lines(head, names, ") {")]
        if lines[-1] == ") {":  # Python allows a trailing comma, C++ does not
            lines[-2] = lines[-2].rstrip(",")
        return "\n".join([*lines, *(f"  {line}" if line and not line.startswith("#") else line for line in self.body), "}"])

    def launch(self, device: str) -> list[str]:
        macros = [f'"{name}={text}"' if text.isdigit() else f'f"{name}={{{text}}}"' for name, text, _ in self.macros]
        lines = call_lines("k = kernel(", [f'"{self.name}"', f"{device}.index", *macros], ")")
        passed = ", ".join(text for _, _, text in self.parameters)
        return [*lines, f"k(({self.grid}, 1, 1), ({self.block[0]}, {self.block[1]}, 1), [{passed}])"]


def pointer(name: str, dtype: str, passed: str, *, written: bool = False) -> tuple[str, str, str]:
    """A tensor as a parameter."""
    return (f"{c_type(dtype)}* __restrict__" if written else f"const {c_type(dtype)}* __restrict__", name, passed)


def assemble_cuda(
    task: Task, title: str, tune: Mapping[str, Sequence[Any]], kernels: Sequence[CudaKernel], launcher: Launcher, results: Sequence[str], *,
    cache: str = "default", helpers: Sequence[str] = (), functions: Sequence[str] = (),
) -> str:  # fmt: skip
    """The module's text.

    Args:
        helpers: Python functions that the launcher calls.
        functions: device functions beyond the prelude.
    """
    is_model = task.format == "model"
    name = forward_name(task) if is_model else task.candidate_entry
    model = model_class(task, name, launcher.parameters) if is_model else None
    macros: dict[str, int] = {}
    for kernel in kernels:
        for macro, _, value in kernel.macros:
            macros.setdefault(macro, value)
    defaults = "".join(f"#ifndef {macro}\n#define {macro} {value}\n#endif\n" for macro, value in macros.items())
    if any("Extreme<" in line for kernel in kernels for line in kernel.body):
        functions = [EXTREME, *functions]
    texts = [f"{INCLUDES}\n{access_macros(cache)}{defaults}", PRELUDE.rstrip("\n"), *(text.strip("\n") for text in functions)]
    texts += [kernel.definition() for kernel in kernels]
    own = launcher.parameters
    imports = ["import functools", "import importlib.util", "import pathlib"]
    more = [line for line in (model.imports if model else ()) if line not in imports]
    head = [f'"""{textwrap.fill(title, WIDTH)}"""', "\n".join([*imports, "", "import torch", *more])]
    if tune:
        head.append("\n".join(["TUNE = {", *(f'    "{key}": {list(values)},' for key, values in tune.items()), "}"]))
    names = ", ".join(f'"{kernel.name}"' for kernel in kernels)
    head.append(f"KERNELS = ({names},)")
    cuda = "\n\n".join(texts)
    head.append(f'CUDA = r"""\n{cuda}\n"""')
    signature = ", ".join([*(spec.name for spec in task.inputs), *own])
    returned = results[0] if len(results) == 1 else ", ".join(results)
    body = "\n".join([f"def {name}({signature}):", *(f"    {line}" for line in [*launcher.lines, f"return {returned}"])])
    blocks = [HEADERS.strip(), COMPILE.strip(), *(helper.strip() for helper in helpers), body]
    if model:
        blocks += [*model.needed, model.text]
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(blocks) + "\n"
