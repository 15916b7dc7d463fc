"""The experts' Triton kernels in the corpus: every expert that fits one of these ops, with each of its choices.

Without a GPU they are interpreted, in a process of its own: ``python -m workbench.bench.honest.experts PLACE OUT OP,OP``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.bench.calibrate import Row

_MOST_CHOICES = 4
"""Ways of one expert that are tried beside its default."""


def _op(name: str, arguments: str, body: str, inputs: str) -> str:
    return (
        f"import torch\nimport torch.nn.functional as F\n\n\ndef {name}({arguments}):\n    {body}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n"
    )


OPS: Mapping[str, str] = {
    "expert softmax": _op("softmax", "x", "return torch.softmax(x, dim=-1)", "torch.randn(19, 517, dtype=DTYPE)"),
    "expert rms norm": _op(
        "rms_norm", "x, w", "h = x.float()\n    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w",
        "torch.randn(19, 517, dtype=DTYPE), torch.randn(517, dtype=DTYPE)",
    ),
    "expert layer norm": _op(
        "layer_norm", "x, w, b", "return F.layer_norm(x, (x.shape[-1],), w, b)",
        "torch.randn(19, 517, dtype=DTYPE), torch.randn(517, dtype=DTYPE), torch.randn(517, dtype=DTYPE)",
    ),
    "expert gate": _op("gate", "x, y", "return F.silu(x) * y", "torch.randn(19, 517, dtype=DTYPE), torch.randn(19, 517, dtype=DTYPE)"),
    "expert product": _op(
        "product", "x, w, b", "return torch.relu(x @ w + b)",
        "torch.randn(40, 96, dtype=DTYPE), torch.randn(96, 33, dtype=DTYPE), torch.randn(33, dtype=DTYPE)",
    ),
    "expert running sum": _op("running_sum", "x", "return torch.cumsum(x, dim=-1)", "torch.randn(19, 517, dtype=DTYPE)"),
    "expert mean square error": _op(
        "mse", "x, y", "return F.mse_loss(x, y)", "torch.randn(19, 517, dtype=DTYPE), torch.randn(19, 517, dtype=DTYPE)"
    ),
}  # fmt: skip


def rows(place: str, ops: Sequence[str], progress: Any) -> Iterator[Row]:
    """Figures of the experts' kernels on `place`."""
    from workbench.bench.calibrate import Row

    chosen = [name for name in OPS if not ops or name in ops]
    if not chosen:
        return
    if place == "cuda":
        found = [asdict(row) for row in _measure(place, chosen)]
    else:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "rows.json"
            command = [sys.executable, "-m", "workbench.bench.honest.experts", place, str(out), ",".join(chosen)]
            ended = subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, check=False, capture_output=True, text=True)
            if not out.exists():
                if progress is not None:
                    progress(f"the experts' kernels can't be interpreted here: {ended.stderr.strip().splitlines()[-1:]}")
                return
            found = json.loads(out.read_text())
    for row in found:
        yield Row(**row)
    if progress is not None:
        progress(f"experts: {len(found)} kernels")


def _measure(place: str, ops: Sequence[str]) -> Iterator[Row]:
    """In this process: these kernels are the workbench's own."""
    from workbench.bench.calibrate import row_of
    from workbench.capture import capture_file
    from workbench.capture.references import load_reference
    from workbench.inputs import make_inputs
    from workbench.judge.correctness import inputsets
    from workbench.judge.correctness.compare import compare
    from workbench.judge.correctness.expected import expect

    for name in ops:
        for dtype in ("float32", "bfloat16"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "reference.py"
                path.write_text(OPS[name].replace("DTYPE", f"torch.{dtype}"))
                task = capture_file(path).task
                reference = load_reference(task, device=place)
                kernels = dict(_kernels(task, Path(folder)))
                figures: dict[str, list[Any]] = {kernel: [] for kernel in kernels}
                variants = {
                    "normal": task.inputs, "large": inputsets.scaled(task.inputs, 64.0), "small": inputsets.scaled(task.inputs, 1e-3),
                    "offset": inputsets.offset(task.inputs, 100.0), "sorted": task.inputs,
                }  # fmt: skip
                for words, specs in variants.items():
                    inputs = make_inputs(specs or task.inputs, 23, place)
                    if words == "sorted":
                        inputs = inputsets.arrange(inputs, task.inputs, "sorted")
                    expected = expect(reference, inputs)
                    for kernel, call in kernels.items():
                        output = call(*[item.clone() for item in inputs])
                        figures[kernel].append((words, compare(output, expected.outputs[0])))
                for kernel, found in figures.items():
                    yield row_of(name, dtype, kernel, True, found)


def _kernels(task: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    from workbench.build.tune import load_candidate
    from workbench.knowledge import experts

    for match in experts.match(task):
        space = experts.choices(match.expert, task)
        ways: list[dict[str, Any]] = [{}]
        ways += [{choice: value} for choice, values in space.items() for value in values[1:]][:_MOST_CHOICES]
        for number, way in enumerate(ways):
            try:
                source = experts.write(match.expert, task, way)
            except Exception:
                continue
            words = " ".join([match.expert, *(f"{key}={value}" for key, value in way.items())])
            made = load_candidate(source, task.candidate_entry, {}, directory=folder, name=f"{match.expert}_{number}".replace("-", "_"))
            yield words, made


def main(place: str, out: str, ops: str) -> None:
    """Writes the rows as JSON."""
    import torch

    from workbench.judge.emulation import interpreter

    torch.set_grad_enabled(False)
    if place == "cpu":
        interpreter.mend()
    Path(out).write_text(json.dumps([asdict(row) for row in _measure(place, ops.split(","))]))


if __name__ == "__main__":
    main(*sys.argv[1:4])
