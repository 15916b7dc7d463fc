"""Briefs that a search would make of an RMS norm, with sources of the length that experts and candidates really have."""

from workbench.brief import Brief, Budget, Card, Parent, Role
from workbench.candidate import Candidate, Diagnosis, Evaluation, Resources, Timing, Verdict, Witness
from workbench.graph import Graph, Node
from workbench.task import InputSpec, OutputSpec, Task, Values, Work

REFERENCE = '''\
import torch


def rms_norm(x, weight, eps):
    """Root mean square norm over the last dimension."""
    variance = x.float().pow(2).mean(-1, keepdim=True)
    return (x.float() * torch.rsqrt(variance + eps)).to(x.dtype) * weight
'''
GRAPH = Graph(
    (
        Node("_to_copy", "aten._to_copy.default", ({"ref": "x"},), {"dtype": "float32"}, (4096, 4096), "float32"),
        Node("pow_1", "aten.pow.Tensor_Scalar", ({"ref": "_to_copy"}, 2), {}, (4096, 4096), "float32"),
        Node("mean", "aten.mean.dim", ({"ref": "pow_1"}, (-1,), True), {}, (4096, 1), "float32"),
        Node("add", "aten.add.Tensor", ({"ref": "mean"}, 1e-6), {}, (4096, 1), "float32"),
        Node("rsqrt", "aten.rsqrt.default", ({"ref": "add"},), {}, (4096, 1), "float32"),
        Node("mul", "aten.mul.Tensor", ({"ref": "_to_copy"}, {"ref": "rsqrt"}), {}, (4096, 4096), "float32"),
        Node("_to_copy_1", "aten._to_copy.default", ({"ref": "mul"},), {"dtype": "bfloat16"}, (4096, 4096), "bfloat16"),
        Node("mul_1", "aten.mul.Tensor", ({"ref": "_to_copy_1"}, {"ref": "weight"}), {}, (4096, 4096), "bfloat16"),
    ),
    ("mul_1",),
)
TASK = Task(
    "rms_norm",
    REFERENCE,
    "rms_norm",
    (
        InputSpec("x", (4096, 4096), "bfloat16", (4096, 1), Values("normal", {"mean": 0.0, "std": 1.0})),
        InputSpec("weight", (4096,), "bfloat16", (1,), Values("normal", {"mean": 1.0, "std": 0.1}), "parameter"),
        InputSpec("eps", (), "python", (), Values("scalar", value=1e-6)),
    ),
    (OutputSpec((4096, 4096), "bfloat16", (4096, 1)),),
    Work(67_117_056, 83_886_080),
    graph=GRAPH,
)
SOURCE = '''\
"""RMS norm, one program a row, the row held in registers."""

import torch
import triton
import triton.language as tl

TUNE = {"WARPS": [4, 8, 16]}


@triton.jit
def _rms_norm_kernel(x_ptr, w_ptr, y_ptr, eps, n, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
    variance = tl.sum(x * x, axis=0) / n
    y = (x * tl.rsqrt(variance + eps)).to(y_ptr.dtype.element_ty)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    tl.store(y_ptr + row * y_stride + columns, y * w, mask=mask)


def rms_norm(x, weight, eps):
    n = x.shape[-1]
    rows = x.reshape(-1, n)
    y = torch.empty_like(rows)
    block = triton.next_power_of_2(n)
    _rms_norm_kernel[(rows.shape[0],)](rows, weight, y, eps, n, rows.stride(0), y.stride(0), BLOCK=block, num_warps=WARPS)
    return y.reshape(x.shape)
'''
EXPERT = f"""\
# One program owns a row. The row is read once from device memory and held in registers between the reduction and the
# elementwise part, so that the traffic is the least possible: one read, one write.
{SOURCE}
"""
LOOPED = EXPERT.replace("one program a row, the row held in registers", "in a loop over tiles of the row").replace(
    "    mask = columns < n\n", "    mask = columns < n  # a tail tile\n" + "    # several rows a program hide latency\n" * 12
)
CARDS = (
    Card(
        "c-rows", "a row reduction has short rows", "give each program several rows: tl.arange over rows as a second axis.", "1.4× faster"
    ),
    Card(
        "c-evict", "the input is read once", 'load it with eviction_policy="evict_first" so that L2 keeps the weights.', "1.05× faster", 0.6
    ),
    Card("c-atomic", "one pass over columns", "partial sums by tl.atomic_add lost to a second small kernel.", "0.7× (slower)", 0.7),
)
LOG = """\
Traceback (most recent call last):
  File "candidate.py", line 31, in rms_norm
    _rms_norm_kernel[(rows.shape[0],)](rows, weight, y, eps, n, rows.stride(0), y.stride(0), BLOCK=n, num_warps=WARPS)
triton.compiler.errors.CompilationError: at 3:14:
def _rms_norm_kernel(x_ptr, w_ptr, y_ptr, eps, n, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
              ^
arange's range must be a power of 2
"""
RIGHT = Evaluation(
    "k1.0",
    "k1",
    TASK.id,
    Verdict.RIGHT,
    parameters={"WARPS": 4},
    judged_by="interpreter (4×130)",
    matched=1.0,
    timing=Timing(24.1, 24.1, 24.1, 24.1, 24.1, modelled=True),
    resources=(Resources("_rms_norm_kernel", (4096,), registers=48, occupancy=0.62, limited_by="registers"),),
)
FAILED = Evaluation(
    "k2.0",
    "k2",
    TASK.id,
    Verdict.WRONG,
    reason="170 of 520 elements differ",
    matched=0.673,
    witness=Witness(7, "as given", 0, (0, 128), 0.0, 1.25, 0.01, "last tile of dim 1"),
    log=LOG * 6,
)
ROLE = Role("memory traffic and layout", "move each byte once, in wide accesses", ("16 bytes a thread", "mark data used once for eviction"))


def candidate(name="k1", source=SOURCE, **more):
    return Candidate(name, "triton", source, "rms_norm", plan="one program a row", island=ROLE.name, **more)


def brief(kind="step", **more):
    parents = {
        "seed": (),
        "step": (Parent(candidate(), RIGHT, Diagnosis("k1.0", "memory", "memory bound, 1.5× over the floor", "read x once")),),
        "repair": (
            Parent(candidate("k2"), FAILED, Diagnosis("k2.0", "mismatch", "the last tile of dim 1 is not written", "mask the tail tile")),
        ),
        "crossover": (Parent(candidate(), RIGHT), Parent(candidate("k3", LOOPED), RIGHT)),
    }.get(kind, ())
    directive = parents[0].diagnosis.directive if parents and parents[0].diagnosis else ""
    fields = {
        "id": "b7", "kind": kind, "candidate": "k7", "island": ROLE, "task": TASK, "parents": parents, "directive": directive,
        "experts": ("rms_norm", "rms_norm_looped"), "cards": CARDS, "hints": ("try two rows a program",), "bans": ("no atomics",),
        "left": Budget(evaluations=20, tokens=400_000), "seed": 11,
    }  # fmt: skip
    return Brief(**(fields | more))


def expert_source(name, task):
    return {"rms_norm": EXPERT, "rms_norm_looped": LOOPED}[name]
