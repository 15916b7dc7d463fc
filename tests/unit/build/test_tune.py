import dataclasses
import sys

import pytest

from workbench.build.tune import candidate_line, choose, complete, defaults, load_candidate, read_tune

SOURCE = '''"""A module."""
from __future__ import annotations
import math
TUNE = {
    "BLOCK": [64, 128],
    "warps": (4, 8),
}

def f(x, block=BLOCK):
    return x, block, warps
'''


def test_choices_in_order_and_defaults():
    assert read_tune(SOURCE) == {"BLOCK": (64, 128), "warps": (4, 8)}
    assert defaults(SOURCE) == {"BLOCK": 64, "warps": 4}
    assert read_tune("def f(x): return x") == {}
    assert read_tune("TUNE: dict = {'A': [True, None, 'x', 1.5, (1, 2)]}")["A"] == (True, None, "x", 1.5, (1, 2))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("TUNE = {'A': []}", "line 1: TUNE['A'] must be a non-empty list"),
        ("x = 1\nTUNE = {'A': [x]}", "line 2: TUNE must be a literal dict"),
        ("TUNE = [1]", "must be a dict, not list"),
        ("TUNE = {'a b': [1]}", "can't be the name"),
        ("TUNE = {'A': [1]}\nTUNE = {'A': [2]}", "line 2: TUNE is assigned twice"),
        ("TUNE = {'A': 64}", "non-empty list"),
        ("TUNE = {'A': [[1, 2]]}", "only numbers"),
        ("def f(:\n", "line 1: "),
    ],
)
def test_a_bad_tune_is_one_line(source, says):
    with pytest.raises(ValueError) as caught:
        read_tune(source)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_chosen_source_runs_the_same_and_has_no_tune(tmp_path):
    plain = choose(SOURCE, {"warps": 8})
    assert "TUNE" not in plain and read_tune(plain) == {}
    namespace: dict = {}
    exec(plain, namespace)
    assert namespace["f"](1) == (1, 64, 8)
    assert plain.startswith('"""A module."""\nfrom __future__')


def test_assignments_move_above_code_that_came_before_tune():
    source = '"""d"""\nfrom __future__ import annotations\ndef g(a=A):\n    return a\nTUNE = {"A": [3, 4]}\nB = A\n'
    namespace: dict = {}
    exec(choose(source, {"A": 4}), namespace)
    assert namespace["g"]() == 4 and namespace["B"] == 4 and "TUNE" not in namespace


def test_unknown_parameters_are_named():
    with pytest.raises(ValueError, match="TUNE has no NOPE; it has BLOCK, warps"):
        choose(SOURCE, {"NOPE": 1})
    with pytest.raises(ValueError, match="the module has no TUNE"):
        complete("x = 1", {"A": 1})


def test_names_are_globals_before_the_body_runs(tmp_path):
    f = load_candidate(SOURCE, "f", {"BLOCK": 128}, directory=tmp_path, name="tuned_candidate")
    assert f(0) == (0, 128, 4)
    assert read_tune((tmp_path / "tuned_candidate.py").read_text())  # the statement stays in the module


def test_dataclasses_work_and_a_missing_entry_is_told(tmp_path):
    source = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n"
    assert dataclasses.is_dataclass(load_candidate(source, "A", {}, directory=tmp_path, name="with_dataclass"))
    with pytest.raises(AttributeError, match="defines no 'f'"):
        load_candidate(source, "f", {}, directory=tmp_path, name="without_f")
    sys.modules.pop("with_dataclass"), sys.modules.pop("without_f")


def test_an_errors_line_in_the_candidate(tmp_path):
    f = load_candidate("def f(x):\n    y = x\n    return len(y)\n", "f", {}, directory=tmp_path, name="raising")
    with pytest.raises(TypeError) as caught:
        f(1)
    assert candidate_line(caught.value, str(tmp_path / "raising.py")) == 3
    with pytest.raises(SyntaxError) as broken:
        compile("a = (", str(tmp_path / "x.py"), "exec")
    assert candidate_line(broken.value, str(tmp_path / "x.py")) == 1


def test_tuples_survive_json():
    assert complete("TUNE = {'A': [(1, 2), (3, 4)]}", {"A": [3, 4]}) == {"A": (3, 4)}
