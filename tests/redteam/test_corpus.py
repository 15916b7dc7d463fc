"""The red-team corpus in the tests: one run of the whole judge over all cases that can run here, then a test an op.

The figures and the table: ``python -m workbench bench judge --redteam``.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest
import torch

from workbench.bench.corpus import HERE, load
from workbench.bench.redteam import line, run
from workbench.judge.text import labels

CASES = load()
ON_GPU = torch.cuda.is_available()
HERE_NOW = [case for case in CASES if case.needs == "cpu" and not case.full]
SAMPLE = [
    case
    for case in HERE_NOW
    if case.honest or case is next(other for other in HERE_NOW if (other.honest, other.number) == (False, case.number))
]
"""All honest kernels, and a cheat of each class: the whole corpus takes twice as long, and is in ``make test-full``."""
OPS = sorted({case.op for case in SAMPLE})
CHEATS, HONEST = 69, 40


@pytest.fixture(scope="module")
def rows():
    """What came of each case, judged once for all tests of this file."""
    report = run("cpu", only=[case.name for case in SAMPLE])
    print(report.markdown())
    return {row.case.name: row for row in report.rows}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("op", OPS)
def test_every_case_gets_what_it_must(rows, op):
    wrong = [line(row) for row in rows.values() if row.case.op == op and row.ok is False]
    assert not wrong, "\n" + "\n".join(wrong)
    assert any(row.ok or row.skipped for row in rows.values() if row.case.op == op)  # too noisy a machine leaves some out


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_all_of_it_that_needs_no_gpu():
    report = run("cpu")
    assert report.ok, "\n" + report.markdown()


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
@pytest.mark.timeout(1200)
def test_all_of_it_on_a_gpu():
    report = run("cuda")
    assert report.ok, "\n" + report.markdown()


def test_the_catalogue_is_covered():
    cheats = Counter(case.number for case in CASES if not case.honest)
    honest = Counter(case.number for case in CASES if case.honest)
    assert set(cheats) == set(range(1, CHEATS + 1)) and set(honest) == set(range(1, HONEST + 1))


def test_cases_declare_what_can_fail():
    for case in CASES:
        wanted = [case.expect, *([case.gpu] if case.gpu else [])]
        assert case.why and case.source != case.attack, case.name
        assert case.attack or all(expect.verdicts for expect in wanted), case.name
        if case.honest:
            assert not {verdict for expect in wanted for verdict in expect.verdicts} & {"wrong", "refused", "time_not_confirmed"}, case.name


@pytest.mark.parametrize("case", [case for case in CASES if case.honest], ids=lambda case: case.name)
def test_no_honest_text_is_refused(case):
    reading = labels.read(case.source)
    assert not reading.tampering and not reading.error, reading


def test_tampering_rules_refuse_tampering_alone():
    """Of the cheats too, text refuses only those that declare it: what else a text shows is a label."""
    refused = {case.name for case in CASES if case.source and labels.read(case.source).tampering}
    assert refused == {case.name for case in CASES if case.expect.verdicts == ("refused",)}


def test_ops_are_reference_files():
    for path in sorted((HERE / "ops").glob("*.py")):
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert "get_inputs" in names and (path.stem in names or "Model" in names), path
        assert any(case.op == path.stem for case in CASES), f"no case answers {path}"
