"""What the text of a reference is made of."""

from __future__ import annotations

import sys

import pytest
from capturing import notebook

from workbench.capture.cell import capture_cell
from workbench.capture.collecting import Collector, defining, literal
from workbench.capture.importing import import_of, is_library
from workbench.capture.references import load_text
from workbench.capture.text import Entry, write
from workbench.errors import CaptureError

TRITON = """
import triton
import triton.language as tl
BLOCK = 128
@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, helper(tl.load(x + at, mask=at < n)), mask=at < n)
@triton.jit
def helper(v):
    return v * 2
def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK)
    return y
"""


def test_kernels_of_triton_go_along_with_their_helpers() -> None:
    pytest.importorskip("triton")
    namespace = notebook()
    with pytest.raises(CaptureError, match="no call in the cell"):
        capture_cell(TRITON, namespace)
    collector = Collector()
    inner, source = defining(namespace["double"], "double")
    text, free = write(collector, Entry("double", source, collector.needs_of(inner, source, "double"), ["x"]))
    assert not free
    assert text.index("import triton\n") < text.index("BLOCK = 128") < text.index("@triton.jit\ndef helper(v):")
    assert text.index("def helper") < text.index("@triton.jit\ndef double_kernel") < text.index("def double(x):")
    loaded = load_text(text, "workbench_reference_with_kernels")
    assert "tl.load" in loaded["double_kernel"].src, "triton finds the source of what was loaded from text"


@pytest.mark.parametrize(
    "value",
    [
        0, -1, 2.5, 1e-30, True, None, "text", b"bytes", 2j, ..., float("inf"), (1,), (), [1, [2, (3, None)]], {"a": [1], 2: "b"}, {1, 2},
        frozenset({1}), slice(1, None, 2), range(3), set(), {},
    ],
)  # fmt: skip
def test_literals_are_what_their_text_makes(value: object) -> None:
    text = literal(value)
    assert text is not None
    made = eval(text, {})
    assert made == value and type(made) is type(value)


def test_literals_of_torch() -> None:
    import torch

    for value in (torch.float16, torch.channels_last, torch.strided, torch.device("cpu"), torch.ops.aten.gelu.default, torch.ops.aten.gelu):
        assert eval(literal(value) or "", {"torch": torch}) == value
    assert literal(torch.Size((2, 3))) == "(2, 3)"
    assert literal(object()) is None and literal([object()]) is None
    assert literal(float("nan")) == 'float("nan")'


def test_where_things_are_imported_from() -> None:
    import functools
    import math

    import numpy as np
    import torch
    import torch.nn.functional as F

    assert import_of(torch.softmax) == ("torch", "softmax")
    assert import_of(F.gelu) == ("torch.nn.functional", "gelu")
    assert import_of(F.scaled_dot_product_attention) == ("torch.nn.functional", "scaled_dot_product_attention")
    assert import_of(math.sqrt) == ("math", "sqrt")
    assert import_of(np.exp) == ("numpy", "exp")
    assert import_of(functools.partial) == ("functools", "partial")
    assert import_of(torch.nn.Linear) == ("torch.nn", "Linear")
    assert import_of(lambda x: x) is None
    assert is_library(math) and is_library(torch) and not is_library(sys.modules[__name__])
