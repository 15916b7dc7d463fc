"""What is said of CUDA candidates is said in CUDA's words."""

import ast
import re
from pathlib import Path

import pytest

from workbench.candidate import Candidate, Evaluation, Resources, Timing, Verdict
from workbench.explain import failures, limits
from workbench.explain.cuda_strategy import text_of, traits
from workbench.explain.cuda_wording import in_cuda, is_cuda
from workbench.explain.diagnosis import diagnose
from workbench.explain.strategy import describe
from workbench.knowledge.cuda_idiom import EXAMPLE
from workbench.task import OutputSpec, Task, Work

TASK = Task("f", "", "f", (), (OutputSpec((4096, 4096), "float32"),), Work(1 << 27, 1 << 24))
TRITONS = re.compile(r"\btl\.|triton|num_warps|num_stages|\bother=|\bmask(ed)?\b|\bprograms?\b|input_precision|multiple_of")


def sentences(module) -> list[str]:
    """Every text of a module; what f-strings put in is 8."""
    tree = ast.parse(Path(module.__file__).read_text())
    skipped = {
        id(node) for top in tree.body if isinstance(top, ast.Assign) and ast.unparse(top.targets[0]) == "_BUILD" for node in ast.walk(top)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "8" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            found.append(node.value)
    return found


@pytest.mark.parametrize("module", [failures, limits], ids=["failures", "limits"])
def test_no_word_of_tritons_is_left(module):
    texts = [text for text in sentences(module) if TRITONS.search(text) and not re.search(r"[\\|]", text)]
    assert len(texts) > 5
    left = {text: in_cuda(text) for text in texts if TRITONS.search(in_cuda(text))}
    # Parts of sentences that are put together elsewhere, and patterns, are no sentences.
    left = {text: word for text, word in left.items() if text.endswith(".") and not text.startswith("Use plain triton")}
    assert not left


@pytest.mark.parametrize(
    ("reason", "kind", "words"),
    [
        ('CUDA C++: identifier "oot" is undefined (line 26)', "build", "Line 26: Declare the name"),
        ("CUDA C++: the source defines no kernel 'scaled'", "build", "__global__ function"),
        ("CUDA C++: k declares 64000 bytes of shared memory where 49152 are possible: …", "build", "extern __shared__"),
        ('CUDA C++: no suitable conversion function from "__nv_bfloat16" to "float" exists (line 9)', "build", "__bfloat162float"),
        ('CUDA C++: cannot open source file "torch/extension.h" (line 8)', "build", "CUDA's own headers"),
        (
            "LaunchError: argument 3 of k is a Python float, which arrives as a double (8 bytes), …",
            "launch",
            "Declare the parameter double",
        ),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "launch", "real extent"),
    ],
)
def test_a_failure_gets_cudas_advice(reason, kind, words):
    verdict = Verdict.DOES_NOT_BUILD if kind == "build" else Verdict.CRASHED
    found = diagnose(Evaluation("k1.0", "k1", TASK.id, verdict, reason, labels=("CUDA C++",)), TASK, 10.0)
    assert found.kind == kind and words in found.directive and not TRITONS.search(found.directive)


def test_a_slow_kernel_gets_cudas_advice():
    resources = (
        Resources("k", (4096, 1, 1), warps=4, registers=40, spill_bytes=64, occupancy=0.5, waves=3.0, vector_bytes=4, backend="cuda"),
    )
    right = Evaluation("k1.0", "k1", TASK.id, Verdict.RIGHT, resources=resources, timing=Timing(90.0, 89.0, 91.0, 89.0, 91.0))
    found = diagnose(right, TASK, 30.0)
    assert is_cuda(right) and found.kind == "spills" and "double its threads a block (now 4 warps)" in found.directive


LOOPS = '''
KERNELS = ("k",)
CUDA = r"""
// for (a comment is no loop)
__global__ void k(const float* x, float* y, int n) {
#pragma unroll
  for (int i = 0; i < 4; ++i) y[i] = x[i];
  for (int i = blockIdx.x; i < n; i += gridDim.x) {
    for (int j = 0; j < n; ++j) y[j] += x[i];
  }
  for (int i = 0; i < n; ++i) atomicAdd(y, x[i]);
}
"""
'''


def test_traits_are_read_from_the_source():
    found = traits(text_of(LOOPS))
    assert found == {"pass": "loops", "product": "no", "combine": "atomic", "address": "pointer", "persistent": "yes"}
    assert traits("__global__ void k() { wmma::mma_sync(z, x, y, z); }")["product"] == "dot"
    assert traits("__global__ void k() { while (true) { __pipeline_memcpy_async(a, b, 16); } }")["address"] == "staged"
    assert text_of("def f(x): return x") == "" and text_of("not python (") == ""


def test_descriptors_have_the_same_keys_as_tritons_and_the_language():
    evaluation = Evaluation("k1.0", "k1", TASK.id, Verdict.NOT_JUDGED, resources=(Resources("k", (1, 1, 1), backend="cuda"),))
    cuda = describe(Candidate("k1", "cuda", EXAMPLE, "add_scaled"), evaluation)
    triton = describe(Candidate("k1", "triton", "import triton\n", "f"), evaluation)
    assert {word.split(":")[0] for word in cuda} - {word.split(":")[0] for word in triton} == {"language"}
