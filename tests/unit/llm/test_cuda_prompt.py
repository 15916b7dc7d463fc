"""The form of CUDA C++ is shown where it is asked for or a parent has it, and it builds."""

import dataclasses
import re

import llm_briefs
import pytest

from workbench.build.cuda import build_candidate
from workbench.knowledge.cuda_idiom import EXAMPLE
from workbench.proposers.llm import render
from workbench.proposers.llm.module import examine
from workbench.proposers.llm.prompts import LIMITS
from workbench.proposers.llm.tokens import count_messages
from workbench.target import TARGETS

FORM = "torch.cuda._compile_kernel(CUDA, name"


def prompt(kind, **more):
    brief = llm_briefs.brief(kind, **more)
    return brief, render(brief, expert_source=llm_briefs.expert_source)


@pytest.mark.parametrize("kind", ["seed", "step", "repair", "crossover"])
def test_it_is_shown_where_it_is_asked_for(kind):
    _, (_, plain) = prompt(kind)
    assert FORM not in plain.content
    _, messages = prompt(kind, hints=("write it in CUDA C++ this time",))
    assert FORM in messages[1].content and "an int as 32-bit `int`, a float as `double`" in messages[1].content
    assert count_messages(messages) <= LIMITS[kind]
    _, messages = prompt(kind, hints=("torch.cuda.synchronize is slow",))
    assert FORM not in messages[1].content


def test_it_is_shown_where_a_parent_has_it():
    brief, _ = prompt("step")
    parent = brief.parents[0]
    cuda = dataclasses.replace(parent, candidate=dataclasses.replace(parent.candidate, backend="cuda", source=EXAMPLE))
    _, user = render(dataclasses.replace(brief, parents=(cuda,)), expert_source=llm_briefs.expert_source)
    assert FORM in user.content


def test_a_module_of_the_form_builds_and_is_a_candidate():
    _, (_, user) = prompt("seed", hints=("use CUDA",))
    lines = re.search(r"```\n(def headers.*?)```", user.content, re.DOTALL)
    assert lines is not None
    source = "import functools\nimport importlib.util\nimport pathlib\n\nimport torch\n\n"
    source += (
        'TUNE = {"BLOCK": [128, 256]}\nKERNELS = ("double_it",)\nCUDA = r"""\nextern "C" __global__ void double_it(float* x, int n) {\n'
    )
    source += '  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) x[i] *= 2.f;\n}\n"""\n\n\n' + lines[1]
    source += "\n\ndef f(x):\n    kernel('double_it', x.device.index)((1, 1, 1), (BLOCK, 1, 1), [x, 9])\n    return x\n"
    assert build_candidate(source, TARGETS["cuda:80"]).kernels[0].parameters == (8, 4)
    module = examine(source)
    assert module.backend == "cuda" and module.has_kernel and module.problem("f", ("x",)) == ""
    assert module.missing == ("BLOCK",)  # a name of TUNE, which the loader sets
