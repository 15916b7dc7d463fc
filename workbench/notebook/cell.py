"""The text of an accepted cell: plain code that needs torch and triton alone.

A cell has four parts, in this order, and a reader can follow it from top to bottom:

1. the kernel and its launcher, with the chosen literals in place of ``TUNE``;
2. the reference, kept as the fallback;
3. the guard: which arguments the kernel was judged for;
4. the registration (fake kernel, autograd by the reference) and the function under the op's own name.

Every name but the op's own bears a suffix made from the source, so that two accepted cells never meet.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from workbench.candidate import Candidate, Evaluation
from workbench.errors import MisuseError
from workbench.notebook.names import own_names, rename
from workbench.notebook.result import Result, result_of
from workbench.notebook.signature import Signature, is_exported, read_signature
from workbench.task import InputSpec, Task

MARK = "# kernel-workbench: "
"""How the line of provenance begins."""
KERNEL = "# --- kernel ---"
REFERENCE = "# --- reference: the fallback ---"
GUARD = "# --- guard: what the kernel was judged for ---"
PUBLIC = "# --- the op ---"
END = "# --- end of the accepted kernel ---"
UNSUPPORTED = "(NotImplementedError, ValueError, TypeError, AssertionError)"
"""What a launcher may raise for a shape that it does not take."""


@dataclass(frozen=True)
class Part:
    """A module's text as it stands in the cell, and the name under which it offers what it defines."""

    text: str
    entry: str


@dataclass(frozen=True)
class Parts:
    """What guard and public code are written from.

    Attributes:
        kernel: the launcher's name in the cell; `reference`: that of the fallback.
        suffix: of every name in the cell but the op's own.
        any_shape: whether the kernel was judged on more shapes than the task's own.
    """

    task: Task
    signature: Signature
    kernel: str
    reference: str
    suffix: str
    any_shape: bool

    @property
    def specs(self) -> dict[str, InputSpec]:
        return {spec.name: spec for spec in self.task.inputs}

    @functools.cached_property
    def result(self) -> Result:
        """What the reference returns; it takes a run to know."""
        return result_of(self.task)


def write_cell(
    task: Task, candidate: Candidate, parameters: Mapping[str, Any], evaluation: Evaluation, run: str, *, cell_source: str = ""
) -> str:
    """The accepted cell of `candidate` at `parameters`.

    Args:
        evaluation: the second judging; its verdict and time stand in the line of provenance.
        run: id of the run that the candidate comes from.
        cell_source: the text that defined the op, for the person's own signature.

    Raises:
        MisuseError: the reference can't be a fallback: its result is a view of an input, or it takes no tensor.
    """
    from workbench.build.tune import choose

    plain = choose(candidate.source, parameters)
    suffix = hashlib.sha256((plain + task.reference).encode()).hexdigest()[:6]
    flags = sorted({*_future_imports(plain), *_future_imports(task.reference)})
    kernel = _part(plain, candidate.entry, suffix)
    reference = _part(task.reference, task.entry, f"reference_{suffix}")
    parts = Parts(task, read_signature(task, cell_source), kernel.entry, reference.entry, suffix, judged_on_many_shapes(evaluation))
    if task.format == "model":
        from workbench.notebook.cell_model import guard, public
    elif is_exported(task, cell_source):
        from workbench.notebook.cell_module import guard, public
    else:
        from workbench.notebook.cell_function import guard, public
    body = "\n".join(
        [
            *([f"from __future__ import {', '.join(flags)}"] if flags else []),
            *(KERNEL, kernel.text, "", "", REFERENCE, reference.text, "", "", GUARD),
            *("import warnings", "", "import torch", "", *guard(parts), "", "", PUBLIC, *public(parts), END),
        ]
    )
    body = re.sub(r"\n{4,}", "\n\n\n", body) + "\n"
    return f"{provenance(task, candidate, evaluation, run, code_hash(body))}\n{body}"


def provenance(task: Task, candidate: Candidate, evaluation: Evaluation, run: str, code: str) -> str:
    """The one comment line on top: where the kernel comes from, what the judge said, and the hash of the lines below it."""
    time = "none"
    if evaluation.timing is not None:
        time = f"{evaluation.timing.median_us:.1f} µs " + (f"modelled for {task.target}" if evaluation.timing.modelled else "measured")
    judged_by = evaluation.judged_by or "nobody"
    return (
        f"{MARK}op={task.name!r} run={run!r} kernel={candidate.id!r} verdict={evaluation.verdict.value!r} "
        f"judged_by={judged_by!r} time={time!r} code={code!r}"
    )


def code_hash(body: str) -> str:
    """What the provenance line says of the lines below it, down to the end marker. Spaces at line ends don't count."""
    lines = [line.rstrip() for line in body.split("\n")]
    if END in lines:
        lines = lines[: lines.index(END) + 1]
    return hashlib.sha256("\n".join(lines).strip("\n").encode()).hexdigest()[:16]


def source_hash(text: str) -> str:
    """The hash of a whole source in an `Evidence`."""
    return hashlib.sha256(text.encode()).hexdigest()


def accepted_hash(text: str) -> str:
    """The hash of an accepted cell in an `Evidence`: from the line of provenance to the end marker, whatever stands around them."""
    lines = [line.rstrip() for line in text.split("\n")]
    start = next((number for number, line in enumerate(lines) if line.startswith(MARK)), 0)
    end = lines.index(END) + 1 if END in lines else len(lines)
    return source_hash("\n".join(lines[start:end]))


def literal(value: Any) -> str:
    """A Python literal of a scalar argument; floats that have none are written as calls."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, (tuple, list)):
        inner = ", ".join(literal(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def tensor_tests(spec: InputSpec, *, fixed_shape: bool) -> list[str]:
    """Conditions on one tensor argument, in Python, cheapest first."""
    name = spec.name
    tests = [f"isinstance({name}, torch.Tensor)", f"{name}.dtype == torch.{spec.dtype}"]
    if fixed_shape:
        tests.append(f"{name}.shape == {literal(spec.shape)}")
    else:
        tests.append(f"{name}.dim() == {len(spec.shape)}")
    tests.append(_layout_test(spec))
    if not fixed_shape:
        # Kernels judged on smaller tensors may count elements in 32 bits.
        tests.append(f"0 < {name}.numel() < 2**31")
    return tests


def device_lines(task: Task, suffix: str) -> list[str]:
    """``DEVICES``: the cards of the architecture that the kernel was made for, and a line that says so where there are none."""
    backend, arch = task.target.split(":")
    if backend == "hip":
        fits = f"torch.version.hip and torch.cuda.get_device_properties(index).gcnArchName.startswith({arch!r})"
    else:
        major, minor = divmod(int(arch), 10)
        fits = f"not torch.version.hip and ({major}, {minor}) <= torch.cuda.get_device_capability(index) < ({major + 1}, 0)"
    return [
        f"DEVICES_{suffix} = [  # the cards of the kind that the kernel was made for",
        "    index",
        "    for index in range(torch.cuda.device_count())",
        f"    if {fits}",
        "]",
        f"if not DEVICES_{suffix}:",
        f'    print("{task.name}: fallback: no GPU" + (" of {task.target}" if torch.cuda.is_available() else ""))',
    ]


def guard_function(parts: Parts, *, grad: str = "") -> list[str]:
    """``fits``: whether arguments are like those that the kernel was judged with; `grad` is one more condition."""
    first = parts.signature.tensors[0]
    tests = [f"isinstance({first}, torch.Tensor)", f'{first}.device.type == "cuda"', f"{first}.device.index in DEVICES_{parts.suffix}"]
    for name in parts.signature.tensors:
        of_one = tensor_tests(parts.specs[name], fixed_shape=not parts.any_shape)
        tests += of_one[1:] if name == first else [*of_one, f"{name}.device == {first}.device"]
    tests += [*value_tests(parts), *_apart(parts), 'not torch.is_autocast_enabled("cuda")', *([grad] if grad else [])]
    return [
        *device_lines(parts.task, parts.suffix),
        "",
        "",
        f"def fits_{parts.suffix}({', '.join(parts.signature.arguments)}):",
        '    """Whether these arguments are like those that the kernel was judged with."""',
        "    return (",
        "        " + "\n        and ".join(tests),
        "    )",
    ]


def _apart(parts: Parts) -> list[str]:
    """Conditions of an op that works in place: each tensor that it writes to has memory of its own, as the judge's had."""
    pairs = [
        (changed, other) for changed in parts.task.changes for other in parts.signature.tensors
        if other != changed and not (other in parts.task.changes and other < changed)
    ]  # fmt: skip
    return [f"{one}.untyped_storage().data_ptr() != {other}.untyped_storage().data_ptr()" for one, other in pairs]


def docstring(text: str) -> str:
    """`text` as it may stand between triple quotes."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _part(source: str, entry: str, suffix: str) -> Part:
    text = _without_main(source)
    try:
        names = own_names(text)
        text = rename(text, {name: f"{name}_{suffix}" for name in names})
    except ValueError as error:
        raise MisuseError(f"{entry} can't be written into a cell: {error}") from None
    if entry not in names:
        raise MisuseError(f"{entry} is not defined in its own module")
    return Part(text.strip("\n"), f"{entry}_{suffix}")


def _without_main(source: str) -> str:
    """Without ``from __future__`` imports (they move to the top) and ``if __name__ == "__main__"`` (it would run in a notebook)."""
    lines = source.split("\n")
    for node in reversed(ast.parse(source).body):
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        main = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
        if future or main:
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _future_imports(source: str) -> list[str]:
    nodes = (node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
    return [alias.name for node in nodes for alias in node.names]


def judged_on_many_shapes(evaluation: Evaluation) -> bool:
    """Whether the judge ran it on several shapes; if not, the guard holds the kernel to the task's own."""
    # The judge names a set by its shape, and variations of it after a comma.
    return len({name.split(",")[0] for name in evaluation.input_sets}) > 1


def _layout_test(spec: InputSpec) -> str:
    if list(spec.strides) == contiguous_strides(spec.shape):
        return f"{spec.name}.is_contiguous()"
    # Dimensions of one element say nothing about a layout.
    order = [dim for dim, size in enumerate(spec.shape) if size != 1]
    expanded = [dim for dim in order if spec.strides[dim] == 0]
    dense = sorted((dim for dim in order if spec.strides[dim] != 0), key=lambda dim: spec.strides[dim], reverse=True)
    tests = [f"{spec.name}.stride({dim}) == 0" for dim in expanded]
    tests += [f"{spec.name}.stride({outer}) >= {spec.name}.stride({inner})" for outer, inner in pairwise(dense)]
    if dense:
        tests.append(f"{spec.name}.stride({dense[-1]}) == {spec.strides[dense[-1]]}")
    return " and ".join(tests) or "True"


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides, as torch gives them to a fresh tensor."""
    strides = [1] * len(shape)
    for dim in reversed(range(len(shape) - 1)):
        strides[dim] = strides[dim + 1] * max(shape[dim + 1], 1)
    return strides


def value_tests(parts: Parts) -> list[str]:
    """Conditions on the arguments that are no tensors: the kernel was judged with one value of each."""
    tests = []
    for name in parts.signature.values:
        value = parts.specs[name].values.value
        text = literal(value)
        if isinstance(value, (tuple, list)):
            tests.append(f"{name} in ({text}, [{text[1:-1].rstrip(',')}])")
        elif value is None or isinstance(value, bool):
            tests.append(f"{name} is {text}")
        else:
            tests.append(f"{name} == {text}")
    return tests
