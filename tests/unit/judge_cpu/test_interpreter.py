"""The mended interpreter against torch. It lives in processes of its own: the flag is read when triton is imported."""

import re

import pytest
from triton_families import FAMILIES
from triton_processes import HERE, run_lines

CHECKS = re.findall(r"@check\ndef (\w+)", (HERE / "interpret_mends.py").read_text())
CASES = [(name, dtype) for name, family in FAMILIES.items() for dtype in family.dtypes]
# Errors in units of the output type's epsilon: half a unit is perfect rounding; sums of products in float32 keep a few.
BOUNDS = {"bfloat16": 0.75, "float16": 0.75, "float32": 12.0, "int64": 0.0}


@pytest.fixture(scope="module")
def mends():
    return {line["check"]: line["failed"] for line in run_lines("interpret_mends.py")}


@pytest.fixture(scope="module")
def families():
    return {(line["family"], line["dtype"]): line for line in run_lines("interpret_families.py")}


@pytest.mark.parametrize("name", CHECKS)
def test_mend(name, mends):
    assert mends[name] == ""


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_family_is_right(name, dtype, families):
    line = families[name, dtype]
    assert "raised" not in line, line["raised"]
    assert line["error_in_eps"] <= BOUNDS[dtype]
    assert line["inputs_unchanged"]
    assert line["seconds"] < 2.0
