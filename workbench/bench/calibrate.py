"""``bench calibrate``: how near honest kernels come to the judge's bounds, and how far dishonest ones are beyond them.

Each kernel of the corpus (`bench.honest`, and the experts' Triton kernels) is compared as the judge compares a candidate, on every kind of
input that the judge draws. The table of it is kept beside the judge, and a test holds the judge's constants against it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.bench.honest.kernels import Kernel, Op, corpus, count
from workbench.capture.references import Reference
from workbench.inputs import make_inputs
from workbench.judge.correctness import compare, inputsets
from workbench.judge.correctness.compare import Comparison
from workbench.judge.correctness.expected import Expected, expect
from workbench.task import InputSpec, Values

TABLE = Path(__file__).parents[1] / "judge" / "correctness" / "calibration.json"
RULES = ("max", "rms", "slope", "mean")
HONEST_AT_MOST, DISHONEST_AT_LEAST = 0.8, 1.0
"""Where figures may lie: what a bound allows is 1."""


@dataclass(frozen=True)
class Row:
    """One kernel: its worst figure over its bound by each rule, over all input sets, and where the worst of all was.

    For a dishonest kernel the figures are those of the input set that tells it best.
    """

    op: str
    dtype: str
    kernel: str
    honest: bool
    worst: float
    max: float
    rms: float
    slope: float
    mean: float
    inputs: str
    verdict: str


def constants() -> dict[str, float]:
    """What the judge uses."""
    names = (
        "MAX_FACTOR", "MAX_ROUND_OFFS", "RMS_FACTOR", "RMS_ROUND_OFFS", "CHAIN", "BIAS_ROUND_OFFS", "BIAS_FACTOR", "FEW_ROWS", "ALIKE",
        "CHANCE", "ROWS_CHANCE",
    )  # fmt: skip
    return {name.lower(): float(getattr(compare, name)) for name in names}


def run(device: str = "auto", ops: Sequence[str] = (), *, progress: Any = None) -> dict[str, Any]:
    """Measures the corpus; the whole table as plain data."""
    place = "cuda" if device == "cuda" or (device == "auto" and torch.cuda.is_available()) else "cpu"
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # small tensors
    torch.set_float32_matmul_precision("highest")
    started = time.perf_counter()
    chosen = [op for op in corpus() if not ops or op.name in ops]
    rows: list[Row] = []
    for op in chosen:
        rows += _measure(op, place)
        if progress is not None:
            progress(f"{op.name}: {len(rows)} kernels, {time.perf_counter() - started:.0f} s")
    rows += list(_experts(place, ops, progress))
    gpu = torch.cuda.get_device_name() if place == "cuda" else ""
    return {
        "device": gpu or "CPU", "torch": torch.__version__, "constants": constants(), "seconds": round(time.perf_counter() - started, 1),
        "honest": sum(row.honest for row in rows), "dishonest": sum(not row.honest for row in rows), "summary": summary(rows),
        "rows": [asdict(row) for row in rows],
    }  # fmt: skip


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """The margins: the highest honest figure by each rule, and the lowest of a dishonest kernel's best."""
    honest, others = [row for row in rows if row.honest], [row for row in rows if not row.honest]
    return {
        "honest_worst": {rule: max((getattr(row, rule) for row in honest), default=0.0) for rule in RULES},
        "honest_refused": [f"{row.op} ({row.dtype}): {row.kernel}" for row in honest if row.worst > 1],
        "dishonest_best": min((row.worst for row in others), default=math.inf),
        "dishonest_passed": [f"{row.op} ({row.dtype}): {row.kernel}" for row in others if row.worst <= 1],
    }


def markdown(table: dict[str, Any]) -> str:
    """The table for people."""
    found = table["summary"]
    lines = [
        "# Calibration of the judge", "",
        "Made by `python -m workbench bench calibrate --write`. A figure is an error over its bound: at most 1 passes.", "",
        f"{table['honest']} honest and {table['dishonest']} dishonest kernels on {table['device']} with PyTorch {table['torch']}.", "",
        "| constant | value |", "| --- | --- |", *(f"| {name} | {value:g} |" for name, value in table["constants"].items()), "",
        "| | max | rms | slope | mean |", "| --- | --- | --- | --- | --- |",
        "| worst honest kernel | " + " | ".join(f"{found['honest_worst'][rule]:.2f}" for rule in RULES) + " |", "",
        f"The dishonest kernel that comes nearest to passing is at {found['dishonest_best']:.2f}.", "",
        "| op | dtype | kernel | | worst | max | rms | slope | mean | on | as the judge says |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in table["rows"]:
        figures = " | ".join(_short(row[rule]) for rule in ("worst", *RULES))
        kind = "honest" if row["honest"] else "dishonest"
        lines.append(f"| {row['op']} | {row['dtype']} | {row['kernel']} | {kind} | {figures} | {row['inputs']} | {row['verdict']} |")
    return "\n".join(lines) + "\n"


def _short(figure: float) -> str:
    return f"{figure:.2f}" if figure < 100 else f"{figure:.0e}"


def _measure(op: Op, place: str) -> Iterator[Row]:
    reference = Reference(op.reference, {})
    for dtype in op.dtypes:
        found: dict[str, list[tuple[str, Comparison]]] = {}
        for words, inputs in _input_sets(op, dtype, place):
            expected = expect(reference, inputs)
            if not all(bool(torch.isfinite(output.truth).all()) for output in expected.outputs):
                continue
            for kernel in op.kernels:
                if dtype in kernel.dtypes:
                    found.setdefault(kernel.name, []).append((words, _compared(kernel, expected)))
        for kernel in op.kernels:
            if kernel.name in found:
                yield row_of(op.name, dtype, kernel.name, kernel.honest, found[kernel.name])


def row_of(op: str, dtype: str, kernel: str, honest: bool, found: Sequence[tuple[str, Comparison]]) -> Row:
    """What all input sets together say of a kernel."""
    figures = [({rule: _finite(one.ratios.get(rule, 0.0)) for rule in RULES}, words, one) for words, one in found]
    worst = max(figures, key=lambda item: max(item[0].values()))
    by_rule = {rule: max(item[0][rule] for item in figures) for rule in RULES} if honest else worst[0]
    verdicts = [("right" if not one.precision else f"lower precision ({one.precision})") if one.right else "wrong" for _, one in found]
    verdict = max(verdicts, key=lambda text: (text == "wrong", text.startswith("lower")))
    return Row(op, dtype, kernel, honest, round(max(worst[0].values()), 4), **{r: round(v, 4) for r, v in by_rule.items()}, inputs=worst[1], verdict=verdict)  # fmt: skip  # noqa: E501


def _finite(figure: float) -> float:
    return figure if math.isfinite(figure) else 1e9


def _compared(kernel: Kernel, expected: Expected) -> Comparison:
    output = kernel.call(*[item.clone() if isinstance(item, torch.Tensor) else item for item in expected.inputs])
    return compare.compare(output.reshape(expected.outputs[0].reference.shape), expected.outputs[0])


def _input_sets(op: Op, dtype: str, place: str) -> Iterator[tuple[str, list[Any]]]:
    """Every kind of input that the judge draws, at every shape of the op."""
    for number, shapes in enumerate(op.shapes):
        specs = tuple(_spec(op, position, shape, dtype) for position, shape in enumerate(shapes))
        for kind in op.kinds:
            if (number and kind in ("small", "outliers", "sorted", "large")) or (
                dtype == "float16" and kind not in ("normal", "large", "sorted")
            ):
                continue  # what one shape and two dtypes show
            drawn = {"large": inputsets.scaled(specs, 64.0), "small": inputsets.scaled(specs, 1e-3), "offset": inputsets.offset(specs, 1000.0)}  # fmt: skip  # noqa: E501
            inputs = make_inputs(drawn.get(kind) or specs, 1000 * number + 17, place)
            structure: Any = {"outliers": "outliers", "sorted": "sorted", "equal": "equal"}.get(kind, "")
            if structure:
                inputs = inputsets.arrange(inputs, specs, structure)
            yield f"{kind} {'×'.join(map(str, shapes[0]))}", inputs


def _spec(op: Op, position: int, shape: tuple[int, ...], dtype: str) -> InputSpec:
    bounds = dict(op.integers)
    if position in bounds:
        values, dtype = Values("integers", {"lo": 0.0, "hi": float(bounds[position])}), "int64"
    else:
        values = Values("normal", {"mean": 0.0, "std": 1.0})
    return InputSpec(f"x{position}", shape, dtype, inputsets.contiguous(shape), values)


def _experts(place: str, ops: Sequence[str], progress: Any) -> Iterator[Row]:
    """The built-in Triton kernels; without a GPU in a process of its own, which interprets them."""
    from workbench.bench.honest import experts

    yield from experts.rows(place, ops, progress)


def write(table: dict[str, Any], path: Path = TABLE) -> None:
    """Keeps the table of one device beside those of others, and the readable one next to it."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    kept["gpu" if table["device"] != "CPU" else "cpu"] = table
    path.write_text(json.dumps(kept, indent=1) + "\n")
    path.with_suffix(".md").write_text("\n".join(markdown(kept[key]) for key in sorted(kept)))


def counted() -> tuple[int, int]:
    """Honest and dishonest kernels of the corpus, the experts' not counted."""
    return count(corpus())
