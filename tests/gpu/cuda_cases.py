"""CUDA candidates with the verdicts that they must get on a GPU. Needs torch alone, so that a bare node can run them."""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "judge_cpu")]

from cuda_tasks import ADD_SCALED, EXTENSION, task_of  # noqa: E402

from workbench.build.cuda_source import backend_of  # noqa: E402
from workbench.candidate import Candidate, Evaluation, Verdict  # noqa: E402
from workbench.capture import capture_file  # noqa: E402
from workbench.fleet import judge_once  # noqa: E402
from workbench.knowledge.cuda_idiom import EXAMPLE  # noqa: E402
from workbench.target import detect_target  # noqa: E402
from workbench.task import Task  # noqa: E402

MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.randn(2048, 4096)]


def get_init_inputs():
    return [4096]
"""

MODEL_NEW = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scaled_relu_kernel(const float* x, const float* w, float* y, int size, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        y[i] = fmaxf(x[i] * w[i % columns], 0.0f);
    }
}

torch::Tensor scaled_relu(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    int size = x.numel();
    scaled_relu_kernel<<<(size + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), size, w.numel());
    return y;
}
"""

scaled_relu = load_inline(
    name="scaled_relu",
    cpp_sources="torch::Tensor scaled_relu(torch::Tensor x, torch::Tensor w);",
    cuda_sources=source,
    functions=["scaled_relu"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return scaled_relu.scaled_relu(x.contiguous(), self.weight)
'''


@dataclass(frozen=True)
class Case:
    """A candidate, the verdicts that are right for it, and what its reason must say."""

    source: str
    verdicts: tuple[Verdict, ...]
    says: str = ""
    entry: str = "add_scaled"
    labels: tuple[str, ...] = ("CUDA C++",)
    parameters: dict[str, Any] = field(default_factory=dict)


PASSES = (Verdict.RIGHT,)


def _store(statement: str) -> str:
    return EXAMPLE.replace("out[i] = c;", statement)


CASES = {
    "right": Case(EXAMPLE, PASSES),
    "right_tuned": Case(EXAMPLE, PASSES, parameters={"BLOCK": 512}),
    "wrong_factor": Case(EXAMPLE.replace("[x, y, out, 0.5, groups]", "[x, y, out, 0.25, groups]"), (Verdict.WRONG,)),
    "tail_missing": Case(EXAMPLE.replace("groups = x.numel() // 8", "groups = x.numel() // 8 - 1"), (Verdict.WRONG,)),
    "does_not_build": Case(_store("oot[i] = c;"), (Verdict.DOES_NOT_BUILD,), r'identifier "oot" is undefined \(line \d+'),
    "illegal_address": Case(_store("out[i + (1LL << 40)] = c;"), (Verdict.CRASHED,), r"illegal memory access"),
    "never_ends": Case(_store("while (((volatile unsigned*)out)[0] != 12345u) { } out[i] = c;"), (Verdict.TIMED_OUT,)),
    # The lower half of the double arrives, which is 0: a wrong result, and a label that says why.
    "wrong_argument": Case(
        EXAMPLE.replace("double factor, int groups", "float factor, int groups"), (Verdict.WRONG,),
        labels=("CUDA C++", "launch does not fit: argument 3 of add_scaled is a Python float"),
    ),
    "load_inline": Case(EXTENSION, PASSES, labels=("CUDA C++", "builds a C++ extension")),
    "load_inline_broken": Case(
        EXTENSION.replace("if (i < n) out[i] =", "if (i < n) oot[i] ="), (Verdict.DOES_NOT_BUILD,), r'identifier "oot" is undefined',
    ),
    "kernelbench": Case(MODEL_NEW, PASSES, entry="ModelNew", labels=("CUDA C++", "builds a C++ extension")),
}  # fmt: skip


def task_for(case: Case) -> Task:
    """The op that the case is a candidate for, at sizes where a time can be confirmed."""
    if case.entry != "ModelNew":
        return task_of(ADD_SCALED, 4096, 8192, detect_target())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text(MODEL)
        return capture_file(path, target=detect_target()).task


def judged(name: str, mode: str = "quick") -> Evaluation:
    """The verdict of a fresh judge."""
    case = CASES[name]
    candidate = Candidate("k1", backend_of(case.source), case.source, case.entry, proposer="person")
    return judge_once(task_for(case), candidate, case.parameters, id="k1.0", mode=mode)[1]  # type: ignore[arg-type]


def fault(name: str, found: Evaluation) -> str:
    """What is not as it must be; empty where all is."""
    case = CASES[name]
    if found.verdict not in case.verdicts:
        return f"{found.verdict.value}: {found.reason}"
    if case.says and not re.search(case.says, found.reason):
        return f"its reason does not say {case.says!r}: {found.reason}"
    missing = [label for label in case.labels if not any(text.startswith(label) for text in found.labels)]
    if missing:
        return f"labels lack {missing[0]!r}: {', '.join(found.labels)}"
    if found.verdict is Verdict.RIGHT and "load_inline" not in case.source and not any(item.backend == "cuda" for item in found.resources):
        return f"its kernels are not described: {', '.join(found.labels)}"
    return ""
