"""What the JupyterLab extension gets: records that a notebook keeps, and answers to silent questions."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest
from conftest import stored_run

from workbench import evolution
from workbench.notebook import bridge
from workbench.notebook.bridge_record import DETAILED, LARGEST, MIME, POINTS, ROWS, Records, record
from workbench.notebook.magics import EvolveMagics
from workbench.notebook.session import SESSION
from workbench.notebook.static import LiveDisplay

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "browser"))  # a run of any length is made there
from recorded_run import RecordedRun  # noqa: E402
from sample_run import run_events  # noqa: E402


@pytest.fixture
def place(tmp_path, monkeypatch, softmax_task):
    """A folder whose store has one run; none is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBENCH_STORE", raising=False)
    monkeypatch.setattr(SESSION, "runs", {})
    monkeypatch.setattr(SESSION, "current_id", "")
    from workbench.store import open_default

    run = stored_run(open_default(), softmax_task)
    return tmp_path, run


@pytest.mark.parametrize("count", [3, 120, 2500])
def test_a_record_is_small_whole_and_json(count):
    run = RecordedRun(run_events(count)).play()
    made = record(run, "the outcome")
    assert len(json.dumps(made, ensure_ascii=False)) <= LARGEST * 1.1
    rows = made["snapshot"]["upserts"]
    assert len(rows) + made["left_out"] == count and len(rows) <= ROWS and len(made["snapshot"]["points"]) <= POINTS * 2
    best = made["snapshot"]["header"]["best"]["id"]
    assert best in {row["id"] for row in rows} and 0 < len(made["details"]) <= DETAILED
    assert made["details"][best]["candidate"]["source"]
    assert made["snapshot"]["header"]["live"] is False
    assert [row["order"] for row in rows] == sorted(row["order"] for row in rows)


def test_the_browser_knows_the_same_names():
    written = (ROOT / "extensions" / "bridge.ts").read_text()
    assert f'RECORD = "{MIME}"' in written
    shown = (ROOT / "extensions" / "labextension" / "src" / "record.ts").read_text()
    fields = shown.split("export interface RunRecord {")[1].split("}")[0]
    run = RecordedRun(run_events(3)).play()
    assert {line.split(":")[0].strip() for line in fields.splitlines() if line.endswith(";")} == set(record(run))


def test_the_static_output_carries_it_beside_the_html():
    run = RecordedRun(run_events(5)).play()
    bundle = LiveDisplay(run, lambda bundle: None, records=Records(run)).bundle()
    assert set(bundle) == {"text/html", "text/plain", MIME}
    assert bundle[MIME]["headline"].startswith("Record of rmsnorm") and "best" in bundle[MIME]["headline"]


def test_a_record_is_not_made_again_for_each_event(monkeypatch):
    from workbench.notebook import bridge_record

    made = []
    real = bridge_record.record
    monkeypatch.setattr(bridge_record, "SPARING", 1e6)
    monkeypatch.setattr(bridge_record, "record", lambda run, headline: made.append(headline) or real(run, headline))
    records = Records(RecordedRun(run_events(5)).play())
    for number in range(4):
        assert records.bundle(f"line {number}")[MIME]["headline"] == f"line {number}"
    assert made == ["line 0"]
    records.bundle("the end", now=True)
    assert made == ["line 0", "the end"]


def test_runs_of_the_folder(place):
    folder, name = place
    answer = bridge.runs()
    assert answer._repr_json_() == dict(answer)
    assert answer["place"] == str(folder / ".workbench")
    assert [run["id"] for run in answer["runs"]] == [name] and answer["runs"][0]["live"] is False
    assert answer["runs"][0]["best"] == "k1"
    json.dumps(answer)


def test_looking_into_an_empty_folder_leaves_nothing_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBENCH_STORE", raising=False)
    assert bridge.runs() == {"place": str(tmp_path / ".workbench"), "runs": []}
    assert list(tmp_path.iterdir()) == []


def test_the_password_of_a_database_does_not_reach_the_browser(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_STORE", f"sqlite:///{tmp_path}/me:secret@runs.db")
    assert "secret" not in json.dumps(bridge.runs()["place"])


def test_looking_at_a_run_does_not_make_it_the_current_one(place):
    made = bridge.record(place[1])
    assert made["snapshot"]["header"]["run"] == place[1] and "k1" in made["details"]
    assert SESSION.current_id == ""
    assert "softmax" in made["headline"]


def test_what_can_not_be_done_is_one_line(place):
    assert "no run yet" in bridge.act("step")["error"]
    assert "knows no verb 'accept'" in bridge.act("accept")["error"]
    assert "nowhere" in bridge.record("nowhere")["error"]


def test_a_verb_reaches_the_current_run(place):
    run = RecordedRun(run_events(5)).play(3)
    SESSION.add(run)
    assert bridge.act("pause") == {"said": f"{run.id}: pausing; the running ones finish"}
    assert run.asked == [("pause",)]
    assert set(bridge.SAID) == set(bridge.VERBS)


def test_a_stored_run_has_a_record(place, softmax_task):
    from workbench.store import open_default

    run = evolution.open_run(open_default(), place[1])
    assert record(run)["snapshot"]["header"]["name"] == "softmax"


def test_the_magic_is_no_coroutine():
    # IPython does not await a magic: it would print a coroutine object and report success.
    assert not inspect.iscoroutinefunction(EvolveMagics.evolve_kernel)
