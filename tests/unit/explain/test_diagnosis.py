"""Each kind of failure and each limit leads to its own directive."""

import dataclasses

import pytest

from workbench.candidate import Evaluation, ModelledTime, Resources, Timing, Verdict, Witness
from workbench.explain.diagnosis import diagnose
from workbench.graph import Graph, Node
from workbench.target import TARGETS
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

SPEC = InputSpec("x", (4096, 8192), "bfloat16", (8192, 1), Values("normal"))
SOFTMAX = Task(
    name="softmax", reference="def f(x): return x", entry="f", inputs=(SPEC,), outputs=(OutputSpec((4096, 8192), "bfloat16"),),
    work=Work(bytes=134_217_728, flops=200_000_000),
    graph=Graph((Node("s", "aten._softmax.default", ({"ref": "x"}, -1, False), {}, (4096, 8192), "bfloat16"),), ("s",)),
)  # fmt: skip
MATMUL = dataclasses.replace(SOFTMAX, work=Work(100_000_000, 2 * 4096**3, 2 * 4096**3, "bfloat16"), graph=Graph())
NORM = dataclasses.replace(SOFTMAX, inputs=(SPEC, InputSpec("weight", (8192,), "bfloat16", (1,), Values("normal"), "parameter")))
TURNED = dataclasses.replace(
    SOFTMAX, graph=Graph((Node("t", "aten.t.default", ({"ref": "x"},), {}, (8192, 4096), "bfloat16"),), ("t",))
)  # fmt: skip
PLAIN = dataclasses.replace(SOFTMAX, graph=Graph())
PRODUCT = dataclasses.replace(SOFTMAX, work=Work(134_217_728, 1000, 1000, "bfloat16"), graph=Graph())
FLOOR = 31.2


def timing(us):
    return Timing(us, us, us, us, us, modelled=True)


def failed(verdict, reason="", **rest):
    return Evaluation("k1.0", "k1", "t", verdict, reason, **rest)


def resources(**changes):
    plain = Resources(
        "softmax_kernel", (4096, 1, 1), warps=8, registers=40, occupancy=0.75, limited_by="registers", waves=6.4, vector_bytes=16
    )
    return dataclasses.replace(plain, **changes)


def modelled(**changes):
    plain = ModelledTime(40.0, 134e6, 134e6, 2e8, 36.0, 17.0, 10.0, 3.0, 1, "memory")
    return dataclasses.replace(plain, **changes)


def right(us=60.0, task=SOFTMAX, floor=FLOOR, **rest):
    rest.setdefault("resources", (resources(),))
    return diagnose(Evaluation("k1.0", "k1", "t", Verdict.RIGHT, timing=timing(us), **rest), task, floor)


@pytest.mark.parametrize(
    ("verdict", "reason", "kind", "says"),
    [
        (
            Verdict.DOES_NOT_BUILD,
            "line 12: out of resources: k needs 300000 bytes of shared memory a program",
            "build",
            "Line 12: Halve the largest",
        ),
        (Verdict.DOES_NOT_BUILD, "line 4: arange's range must be a power of 2", "build", "Line 4: Make every size in tl.arange"),
        (Verdict.DOES_NOT_BUILD, "line 9: AttributeError(\"module 'triton.language' has no attribute 'tanh'\")", "build", "libdevice"),
        (Verdict.DOES_NOT_BUILD, "Cannot access global variable BLOCK from within @jit'ed function", "build", "tl.constexpr"),
        (Verdict.DOES_NOT_BUILD, "something that no one foresaw", "build", "something that no one foresaw"),
        (Verdict.CRASHED, "CUDA error: an illegal memory access was encountered", "launch", "Mask every load"),
        (Verdict.CRASHED, "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 9)", "launch", "no others"),
        (Verdict.CRASHED, "line 20: TypeError: f() got an unexpected keyword argument 'B'", "launch", "Line 20: Make the call agree"),
        (Verdict.TIMED_OUT, "", "timeout", "bound every loop"),
        (Verdict.REFUSED, "replaces torch.cuda.Event", "refused", "Remove what the reason names"),
        (Verdict.NOT_JUDGED, "the interpreter can't run it: inline assembly can't be interpreted", "unknown", "plain triton.language"),
        (Verdict.TIME_NOT_CONFIRMED, "the clocks disagree", "unknown", "current stream"),
    ],
)
def test_failures(verdict, reason, kind, says):
    found = diagnose(failed(verdict, reason), SOFTMAX, FLOOR)
    assert found.kind == kind and says in found.directive and found.headroom is None
    assert found.evaluation == "k1.0" and found.summary and "\n" not in found.directive


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("the last 28 of 131 in dim 1 (from 103: a tail or tile that is not covered)", "triton.cdiv"),
        ("every element scaled by 1.016", "divisor"),
        ("shifted by 0.5", "masked lanes"),
        ("zeros", "stored under the mask"),
        ("NaN (never written, or read from beside a tensor)", "cover the whole output"),
        ("NaN (never written, or read from beside a tensor), only the last index of dim 1", "not size - 1"),
        ("NaN or infinity in 3% of them", "maximum before exponentials"),
        ("every 2th index of dim 0 from 1", "offsets of this axis"),
        ("one element", "edge case"),
        ("scattered, 3.0% of the elements", "race"),
        ("outside of a tensor", "mask that is missing"),
        ("input changed", "of its own"),
        ("scaled by 0.6292, scattered, 39.1% of the elements", "each element is counted once"),
        ("55 of 259 indices of dim 1 (70 elements)", "tight bounds"),
    ],
)
def test_the_pattern_of_a_mismatch_names_the_mistake(pattern, says):
    witness = Witness(7, "odd sizes 131×259", 0, (2, 130), 0.5, 0.25, 0.001, pattern)
    found = diagnose(failed(Verdict.WRONG, "differs", witness=witness, matched=0.98), SOFTMAX, FLOOR)
    assert found.kind == "mismatch" and says in found.directive
    assert "output 0[2, 130] is 0.5 where 0.25 is right, on odd sizes 131×259" in found.evidence


def test_a_reduction_is_told_what_is_neutral():
    witness = Witness(7, "s", pattern="the last 28 of 131 in dim 1 (a tail or tile that is not covered)")
    assert "-inf for maxima" in diagnose(failed(Verdict.WRONG, witness=witness), SOFTMAX, FLOOR).directive
    assert "-inf for maxima" not in diagnose(failed(Verdict.WRONG, witness=witness), MATMUL, FLOOR).directive


def test_what_the_set_and_the_share_say():
    nan = Witness(7, "odd sizes 131×259, values ×64", pattern="NaN (never written, or read from beside a tensor), scattered")
    assert "maximum before exponentials" in diagnose(failed(Verdict.WRONG, witness=nan), SOFTMAX, FLOOR).directive
    nowhere = Witness(7, "odd sizes 131×259", pattern="")
    assert "Recompute one output element" in diagnose(failed(Verdict.WRONG, witness=nowhere, matched=0.0), SOFTMAX, FLOOR).directive
    leaning = diagnose(failed(Verdict.WRONG, "a systematic error: all elements lean to one side", matched=1.0), SOFTMAX, FLOOR)
    assert "float32" in leaning.directive


def test_a_shape_and_a_dtype():
    assert "shape" in diagnose(failed(Verdict.WRONG, "has shape (3,) where (4,) is right"), SOFTMAX, FLOOR).directive
    assert "dtype" in diagnose(failed(Verdict.WRONG, "output 0 is float32 where bfloat16 is right"), SOFTMAX, FLOOR).directive


def test_lower_precision():
    loose = failed(Verdict.LOWER_PRECISION, resources=(resources(dot_precision="tf32"),), error_ratio=7.0)
    assert 'input_precision="ieee"' in diagnose(loose, MATMUL, FLOOR).directive
    half = failed(Verdict.LOWER_PRECISION, resources=(resources(),))
    assert "float32" in diagnose(half, SOFTMAX, FLOOR).directive


@pytest.mark.parametrize(
    ("case", "kind", "says"),
    [
        ({"us": 34.0}, "floor", "Nothing is left"),
        ({"resources": (resources(spill_bytes=256, registers=255),)}, "spills", "num_warps (now 8)"),
        ({"us": 20.0, "floor": 2.0, "modelled": modelled(launches=4)}, "launches", "Fuse the 4 launches"),
        ({"us": 4.0, "floor": 0.1, "modelled": modelled(launches=1)}, "launches", "allocate and launch once"),
        ({"resources": (resources(grid=(16, 1, 1), waves=0.02),)}, "occupancy", "at least 264 programs"),
        ({"modelled": modelled(dram_bytes=270e6, launches=2)}, "memory", "fuse the launches"),
        ({"modelled": modelled(dram_bytes=201e6)}, "memory", "Read each input once"),
        ({"resources": (resources(occupancy=0.2, registers=168),)}, "occupancy", "registers a thread"),
        ({"resources": (resources(vector_bytes=4),)}, "memory", "16 bytes wide"),
        ({"resources": (resources(waves=1.2),)}, "memory", "whole waves"),
        ({}, "memory", "more bytes in flight"),
        ({"modelled": modelled(limiter="compute", compute_us=50.0)}, "compute", "exp2"),
        ({"task": PRODUCT, "us": 900.0, "modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=900e6)}, "l2", "larger tiles"),
        ({"modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=201e6)}, "l2", "Read each row once"),
        ({"task": TURNED, "modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=440e6)}, "l2", "turn a tile in registers"),
        ({"task": PLAIN, "modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=440e6)}, "l2", "neighbouring addresses"),
        ({"task": NORM, "modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=201e6)}, "l2", "load weight once for all of them"),
        ({"task": NORM, "modelled": modelled(limiter="l2", l2_us=50.0, l2_bytes=900e6)}, "l2", "Read each row once"),
        ({"resources": (resources(warps=32),)}, "memory", "try 8 and 16 warps (now 32)"),
        ({"resources": (resources(warps=1),)}, "memory", "try 2 warps (now 1)"),
        ({"resources": (resources(warps=32, spill_bytes=256),)}, "spills", "halve its block or tile, so"),
        ({"task": MATMUL, "floor": 186.0, "us": 900.0}, "compute", "tl.dot on bfloat16"),
        (
            {
                "task": MATMUL, "floor": 186.0, "us": 900.0, "modelled": modelled(limiter="compute", compute_us=800.0, dram_bytes=1e8),
                "resources": (resources(tensor_cores=True, dot_precision="bfloat16"),),
            },
            "compute", "larger tiles",
        ),
    ],
)  # fmt: skip
def test_limits_of_what_works(case, kind, says):
    found = right(**case)
    assert found.kind == kind and says in found.directive
    assert found.headroom == pytest.approx(case.get("us", 60.0) / case.get("floor", FLOOR))
    assert found.evidence[0].startswith("modelled time")


def test_without_a_time_there_is_no_headroom():
    found = diagnose(Evaluation("k1.0", "k1", "t", Verdict.RIGHT), SOFTMAX, FLOOR)
    assert found.headroom is None and found.directive


def test_occupancy_directive_gives_a_figure_that_helps():
    from workbench.explain.resources import occupancy, registers_for_one_more

    item = resources(registers=168, warps=4, occupancy=0.19)
    target = TARGETS["cuda:90"]
    fewer = registers_for_one_more(target, item)
    assert fewer is not None and fewer < 168
    assert occupancy(target, 4, fewer, 0).blocks == occupancy(target, 4, 168, 0).blocks + 1
    assert registers_for_one_more(target, resources(registers=24)) is None
