"""Inspections in sandboxed workers: what they find in kernels whose behaviour is known, and what hostile ones get away with."""

from __future__ import annotations

import json
import threading
import time

import pytest

from workbench.candidate import Candidate
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
COPY = HEAD + '''
@triton.jit
def copy_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at * stride, mask=mask)
    tl.store(y + at, v * 2, mask=mask)


def double(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), 1, BLOCK=128)
    return y
'''  # fmt: skip
STRIDED = COPY.replace("x.numel(), 1, BLOCK", "x.numel() // 2, 2, BLOCK").replace("x.numel(), 128", "x.numel() // 2, 128")
TWICE = COPY.replace("v * 2,", "v + tl.load(x + at, mask=mask),")


@pytest.fixture(scope="module")
def task():
    shape, strides = (1000, 1003), (1003, 1)
    return Task(
        "double", "def double(x):\n    return x * 2\n", "double", (InputSpec("x", shape, "float32", strides, Values("normal")),),
        (OutputSpec(shape, "float32"),), Work(8 * 1003000, 1003000),
    )  # fmt: skip


@pytest.fixture(scope="module")
def inspector(task, nursery):
    from workbench.judge.inspection.inspector import Inspector

    made = Inspector(task, device="cpu", nursery=nursery)
    yield made
    made.close()


def look(inspector, source, what="memory", **options):
    return inspector.inspect(Candidate("k1", "triton", source, "double"), {}, what, options)


def row(report, op, launch=0):
    return next(one for one in report["launches"][launch]["accesses"] if one["op"] == op)


def test_a_plain_copy_reads_and_writes_each_element_once_in_full_sectors(inspector):
    report = look(inspector, COPY)
    (launch,) = report["launches"]
    assert launch["counted"] == launch["programs"] > 1
    tensors = {one["name"]: one for one in launch["tensors"]}
    for name, kind in (("x", "reads"), ("y", "writes")):
        cells = tensors[name]["rows"] * tensors[name]["columns"]
        assert tensors[name][kind] == [[1.0, cells]]
        assert tensors[name]["touched"] == 1.0
        assert tensors[name]["most_" + kind] == 1
    load = row(report, "load")
    assert load["text"] == "v = tl.load(x + at * stride, mask=mask)"
    assert load["line"] == 9
    assert load["bytes_requested"] == load["bytes_unique"] == 4 * tensors["x"]["shape"][0] * tensors["x"]["shape"][1]
    assert load["sectors_per_request"] <= load["ideal_sectors_per_request"] + 0.2
    elements = load["bytes_unique"] // 4
    assert load["masked"] == pytest.approx(1 - elements / (launch["programs"] * 128), abs=1e-3)
    assert load["masked"] > 0, "the last program's tail is off"


def test_neighbouring_programs_have_neighbouring_footprints(inspector):
    (launch,) = look(inspector, COPY)["launches"]
    first, second = launch["sampled"][0], launch["sampled"][1]
    assert (first["number"], second["number"]) == (0, 1)
    prints = [{one["tensor"]: one for one in program["footprints"]} for program in (first, second)]
    assert prints[0]["x"]["reads"][0][0] == 0
    assert abs(prints[1]["x"]["reads"][0][0] - prints[0]["x"]["reads"][-1][1]) <= 1
    assert launch["sampled"][-1]["number"] == launch["programs"] - 1


def test_every_second_element_costs_eight_sectors_a_request(inspector):
    report = look(inspector, STRIDED, shapes="real")
    assert row(report, "load")["sectors_per_request"] == pytest.approx(8, abs=0.1)
    assert row(report, "load")["ideal_sectors_per_request"] == pytest.approx(4, abs=0.1)
    assert row(report, "store")["sectors_per_request"] == pytest.approx(4, abs=0.1)
    (launch,) = report["launches"]
    assert launch["counted"] == 16 < launch["programs"]
    assert report["inputs"] == ["x 1000×1003 float32"]


def test_a_kernel_that_reads_twice_counts_two(inspector):
    report = look(inspector, TWICE)
    (launch,) = report["launches"]
    tensor = next(one for one in launch["tensors"] if one["name"] == "x")
    assert tensor["reads"] == [[2.0, tensor["rows"] * tensor["columns"]]]
    assert len([one for one in launch["accesses"] if one["op"] == "load"]) == 2


def test_the_compiler_of_another_target(inspector):
    report = look(inspector, COPY, "compiler", target="hip:gfx942")
    assert report["target"] == "hip:gfx942"
    assert [stage["name"] for stage in report["launches"][0]["stages"]] == ["ttir", "ttgir", "llir", "amdgcn"]


def test_a_trace_without_a_gpu_is_modelled_and_says_so(inspector):
    report = look(inspector, COPY, "trace")
    assert report["measured"] is False
    assert [(one["name"], one["kind"]) for one in report["timelines"]] == [
        ("variant", "modelled"), ("reference", "modelled"), ("reference", "host"),
    ]  # fmt: skip
    variant, _, host = report["timelines"]
    assert variant["kernels"][0]["name"] == "copy_kernel"
    assert variant["kernels"][0]["own"] is True
    assert variant["kernels"][0]["bytes"] == pytest.approx(2 * 4 * 1003000, rel=0.02)
    assert set(variant["slices"][0]["parts"]) == {"DRAM", "L2", "arithmetic", "chain of loads", "launch"}
    assert host["kernels"][0]["name"] == "aten::mul"
    assert "modelled" in report["notes"][0]
    names = {event["args"]["name"] for event in report["chrome"]["traceEvents"] if event["ph"] == "M"}
    assert {"variant (modelled)", "reference (host)"} <= names


@pytest.mark.parametrize(
    ("what", "options", "said"),
    [
        ("prices", {}, "there is no 'prices'"),
        ("memory", {"shapes": "huge"}, "no shapes 'huge', choose small or real"),
        ("compiler", {"target": "cuda:7"}, "unknown target 'cuda:7'"),
        ("trace", {"colour": 1}, "trace has no such option (colour)"),
    ],
)
def test_what_can_not_be_asked_is_one_line(inspector, what, options, said):
    answer = look(inspector, COPY, what, **options)
    assert said in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("trick", "said"),
    [
        ("os._exit(3)", "the process ended itself"),
        ("raise ValueError('no')", "fails when it runs: ValueError: no"),
    ],
)
def test_what_fails_when_it_is_loaded_is_one_line(inspector, trick, said):
    assert said in look(inspector, f"import os\n{trick}\n")["error"]


def test_a_report_of_the_wrong_form_is_refused(inspector):
    forged = COPY + (
        "\nfrom workbench.judge.workers import inspections\n"
        "inspections._memory = lambda *a, **k: {'report': {'shapes': {'<script>': 1}, 'inputs': [[2]], 'launches': [7]}}\n"
    )
    assert "what no worker sends" in look(inspector, forged)["error"]


def test_it_can_be_cancelled(inspector):
    timer = threading.Timer(0.5, inspector.cancel)
    timer.start()
    begun = time.monotonic()
    answer = look(inspector, COPY.replace("    y = torch.empty_like(x)", "    while True: pass"), "compiler")
    assert answer == {"error": "cancelled"}
    assert time.monotonic() - begun < 60, "the loop would have gone on until the limit"
    assert "launches" in look(inspector, COPY, "compiler"), "and it goes on working"


def test_a_model_is_inspected_as_it_is_constructed(nursery):
    from workbench.judge.inspection.inspector import Inspector

    reference = (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self, by):\n        super().__init__()\n        self.by = by\n"
        "    def forward(self, x):\n        return x * self.by\n"
    )
    shape, strides = (1000, 1003), (1003, 1)
    task = Task(
        "double", reference, "Model", (InputSpec("x", shape, "float32", strides, Values("normal")),), (OutputSpec(shape, "float32"),),
        Work(8 * 1003000, 1003000), format="model", init_args=(2,),
    )  # fmt: skip
    source = COPY + (
        "\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, by):\n        super().__init__()\n        self.by = by\n"
        "    def forward(self, x):\n        assert self.by == 2\n        return double(x)\n"
    )
    inspector = Inspector(task, device="cpu", nursery=nursery)
    try:
        for what in ("compiler", "memory"):
            report = inspector.inspect(Candidate("k1", "triton", source, "ModelNew"), {}, what, {})
            assert report.get("launches"), (what, report)
            assert report["launches"][0]["kernel"] == "copy_kernel"
    finally:
        inspector.close()


def test_a_report_of_scattered_accesses_stays_small_enough_to_send(inspector):
    scattered = COPY.replace("x + at * stride", "x + (at.to(tl.int64) * at * 3 + at) % n").replace("128", "16384")
    report = look(inspector, scattered, shapes="real")
    assert len(json.dumps(report)) <= 300_000
    (launch,) = report["launches"]
    tensor = next(one for one in launch["tensors"] if one["name"] == "x")
    assert 8 <= tensor["rows"] <= 128
    assert sum(repeat for _, repeat in tensor["reads"]) == tensor["rows"] * tensor["columns"]
    load = next(one for one in launch["accesses"] if one["op"] == "load")
    assert load["sectors_per_request"] > 16, "each lane has a sector of its own, or nearly"
