"""CUDA candidates before the judge of a machine without a GPU: built in a sandboxed worker, described, and not judged."""

from __future__ import annotations

import pytest
from cuda_tasks import ADD_SCALED, EXTENSION, task_of

from workbench.candidate import Candidate, Verdict
from workbench.explain.diagnosis import diagnose
from workbench.explain.strategy import describe
from workbench.judge.judge import Judge
from workbench.judge.stages.building import CUDA_ELSEWHERE
from workbench.knowledge.cuda_idiom import EXAMPLE


@pytest.fixture(scope="module")
def judge():
    made = Judge(task_of(ADD_SCALED), device="cpu", seed=1)
    yield made
    made.close()


def judged(judge, source: str, parameters=None, backend="cuda"):
    return judge.evaluate(Candidate("k1", backend, source, "add_scaled"), parameters or {}, id="k1.0")


@pytest.mark.parametrize("backend", ["cuda", "triton"])
def test_a_right_candidate_is_built_described_and_not_judged(judge, backend):
    found = judged(judge, EXAMPLE, {"BLOCK": 512}, backend)
    assert (found.verdict, found.reason) == (Verdict.NOT_JUDGED, CUDA_ELSEWHERE)
    assert found.timing is None and found.speedup is None and found.time_us is None and not found.verdict.passes
    (resources,) = found.resources
    assert resources.kernel == "add_scaled" and resources.warps == 16 and resources.registers > 0 and resources.backend == "cuda"
    assert not any("tamper" in label or "no kernel" in label for label in found.labels)


def test_what_does_not_build_says_where(judge):
    source = EXAMPLE.replace("out[i] = c;", "oot[i] = c;")
    found = judged(judge, source)
    assert found.verdict is Verdict.DOES_NOT_BUILD
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "oot[i]" in text)
    assert found.reason == f'CUDA C++: identifier "oot" is undefined (line {line})'
    assert f"line {line}: error" in found.log


def test_a_hostile_include_shows_nothing_of_this_machine(judge, tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("the_secret_word\n")
    found = judged(judge, EXAMPLE.replace("#include <cuda_bf16.h>", f'#include "{secret}"\n#include <cuda_bf16.h>'))
    assert found.verdict is Verdict.DOES_NOT_BUILD
    assert "the_secret_word" not in found.reason + found.log
    assert "cannot open source file" in found.reason


def test_a_launch_that_can_not_work_crashes_with_its_line(judge):
    found = judged(judge, EXAMPLE.replace("[x, y, out, 0.5, groups]", "[x, y, out, groups]"))
    assert found.verdict is Verdict.CRASHED and "5 parameters and is launched with 4 arguments (line" in found.reason


def test_a_compiler_that_never_ends_is_stopped():
    from workbench.judge.trial import Limits

    doublings = "".join(f"#define D{i + 1}(x) D{i}(x) D{i}(x)\n" for i in range(24))
    slow = EXAMPLE.replace('extern "C"', f'#define D0(x) x\n{doublings}extern "C"', 1)
    slow = slow.replace("  out[i] = c;", "  D24(f = f * f + 1.0f;) if (f > 0.5f) out[i] = c;")
    judge = Judge(task_of(ADD_SCALED), device="cpu", seed=1, limits=Limits(build=4.0))
    try:
        found = judged(judge, slow)
        assert found.verdict is Verdict.TIMED_OUT, found.reason
        assert judged(judge, EXAMPLE).reason == CUDA_ELSEWHERE
    finally:
        judge.close()


def test_an_extension_is_judged_on_a_gpu(judge):
    found = judged(judge, EXTENSION)
    assert found.verdict is Verdict.NOT_JUDGED and "nvcc" in found.reason
    assert "builds a C++ extension" in found.labels


def test_strategy_and_diagnosis_speak_of_cuda(judge):
    found = judged(judge, EXAMPLE)
    words = describe(Candidate("k1", "cuda", EXAMPLE, "add_scaled"), found)
    assert {"launches:1", "library:no", "pass:one", "product:no", "combine:no", "vector:16", "cores:plain", "language:cuda"} <= set(words)
    broken = judged(judge, EXAMPLE.replace("out[i] = c;", "oot[i] = c;"))
    why = diagnose(broken, judge.task, 10.0)
    assert why.kind == "build" and why.summary == "It uses a name that is not declared." and "tl." not in why.directive


def test_a_launch_that_does_not_fit_is_told_beside_what_came_of_it():
    """On a GPU the driver reads what lies there, and all that is seen are wrong values; here PyTorch has no compiler at all."""
    source = EXAMPLE.replace("double factor", "float factor")
    judge = Judge(task_of(ADD_SCALED), device="host", seed=1)
    try:
        found = judged(judge, source)
    finally:
        judge.close()
    assert found.verdict is Verdict.CRASHED
    line = next(number for number, text in enumerate(source.splitlines(), 1) if 'kernel("add_scaled"' in text)
    (label,) = (label for label in found.labels if label.startswith("launch does not fit: "))
    assert "a Python float, which arrives as a double (8 bytes)" in label and f"(line {line})" in label
    why = diagnose(found, judge.task, 10.0)
    assert why.kind == "launch" and "Declare the parameter double" in why.directive
