"""extensions/protocol.ts says what Python does: the same names, the same fields."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from workbench import brief, candidate, events
from workbench.board import commands, editors, rows
from workbench.board.accepting import Accepts
from workbench.board.feed import Feed
from workbench.board.inspecting import Inspections
from workbench.board.prompts import prompt
from workbench.board.writing import Writings
from workbench.evolution.stream import Stream, Written
from workbench.explain import inspection

PROTOCOL = (Path(__file__).parents[3] / "extensions" / "protocol.ts").read_text()
INTERFACES = {
    name: set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE))
    for name, body in re.findall(r"^export interface (\w+) \{\n(.*?)^\}", PROTOCOL, re.MULTILINE | re.DOTALL)
}
RECORDS = {
    record.__name__: record
    for record in (
        candidate.Candidate, candidate.Witness, candidate.Timing, candidate.Baseline, candidate.Speedup, candidate.Resources,
        candidate.ModelledTime, candidate.Environment, candidate.Evaluation, candidate.Diagnosis, candidate.Evidence, brief.Budget,
        brief.Usage, brief.Proposal, brief.Card, *events.EVENT_TYPES.values(), inspection.Stage, inspection.CompiledLaunch,
        inspection.CompilerReport, inspection.TensorMap, inspection.Footprint, inspection.ProgramMap, inspection.AccessRow,
        inspection.LaunchMemory, inspection.MemoryReport, inspection.Slice, inspection.KernelRow, inspection.Timeline, inspection.Metric,
        inspection.TraceReport,
    )
}  # fmt: skip


def union(name: str) -> set[str]:
    """The strings of an exported union type."""
    body = re.search(rf"^export type {name} =(.*?);", PROTOCOL, re.MULTILINE | re.DOTALL)
    assert body, name
    return set(re.findall(r'"([^"]+)"', body[1]))


@pytest.mark.parametrize("name", RECORDS)
def test_records_have_the_same_fields(name):
    assert {field.name for field in dataclasses.fields(RECORDS[name])} == INTERFACES[name]


def test_unions():
    assert union("Verdict") == {verdict.value for verdict in candidate.Verdict}
    assert union("RunState") == set(typing.get_args(events.RunState))
    assert union("BriefKind") == set(typing.get_args(brief.BriefKind))
    assert union("Backend") == set(typing.get_args(candidate.Backend))
    assert union("Verb") == set(commands.VERBS)


def test_what_a_snapshot_holds(recorded):
    sent, packs = [], []
    recorded.play()
    for feed in (Feed(recorded, sent.append), Feed(recorded, sent.append, packed=lambda message, _: packs.append(message))):
        feed.flush()
        feed.snapshot()
        feed.close()
    snapshot = next(message for message in sent if message["type"] == "snapshot")
    assert set(snapshot) == INTERFACES["SnapshotMessage"]
    [packed] = packs
    assert set(packed) == INTERFACES["PackedMessage"] and set(packed["upserts"]) == set(packed["points"]) == INTERFACES["Packed"]
    assert {column["kind"] for column in packed["upserts"]["fields"].values()} <= set(re.findall(r'\{ kind: "(\w+)"', PROTOCOL))
    assert {frozenset(row) for row in snapshot["upserts"]} == {frozenset(INTERFACES["Row"])}
    assert {frozenset(point) for point in snapshot["points"]} == {frozenset(INTERFACES["Point"])}
    assert {frozenset(line) for line in snapshot["log"]} == {frozenset(INTERFACES["LogLine"])}
    assert set(snapshot["roof"]) == INTERFACES["Roof"]
    assert set(snapshot["header"]) == INTERFACES["Header"]
    assert set(snapshot["header"]["best"]) == INTERFACES["Best"]
    assert set(snapshot["header"]["eager"]) == INTERFACES["Baseline"]


def test_what_a_delta_holds(recorded):
    sent = []
    feed = Feed(recorded, sent.append)
    recorded.play(40)
    feed.flush()
    feed.close()
    assert all(set(message) == INTERFACES["DeltaMessage"] for message in sent)
    assert sent


def test_what_a_detail_holds(recorded):
    recorded.play()
    assert set(rows.detail(recorded, "k4")) == INTERFACES["Detail"]


def test_what_a_prompt_holds(called):
    asked = prompt(called, "k6")
    assert set(asked) == INTERFACES["Prompt"]
    assert set(asked["brief"]) == INTERFACES["AskedBrief"]
    assert {frozenset(call) for call in asked["calls"]} == {frozenset(INTERFACES["ModelCall"])}
    assert set(asked["calls"][0]["messages"][0]) == INTERFACES["PromptMessageText"]
    stepped = next(row["id"] for row in called.rows() if row["parents"])
    assert set(prompt(called, stepped)["brief"]["parents"][0]) == INTERFACES["AskedParent"]


def test_what_is_being_written_and_what_is_inspected():
    sent, stream = [], Stream()
    stream.tell(Written("begins", "b1", "qwen"))
    writings = Writings(stream, sent.append)
    writings.whole()
    writings.close()
    assert set(sent[0]) == INTERFACES["WritingMessage"] and set(sent[0]["answers"][0]) == INTERFACES["Writing"]
    told = []
    Inspections(object(), lambda message, _: told.append(message)).begin("r", "k1.0", "compiler", {})
    Inspections(object(), lambda message, _: told.append(message)).save("r")
    assert set(told[0]) == INTERFACES["InspectionMessage"] and set(told[1]) == INTERFACES["FileMessage"]
    assert set(editors.answer("r", "")[0]) == INTERFACES["EditorsMessage"]
    assert union("What") == set(inspection.WHATS)
    assert union("TimeKind") == set(typing.get_args(inspection.TimeKind))


def test_what_an_accept_tells():
    sent = []
    Accepts(None, None, sent.append, "w").begin("r1", "k1", "below", False)
    assert set(sent[0]) == INTERFACES["AcceptMessage"]


def test_the_browser_unpacks_every_field():
    unpacking = (Path(__file__).parents[3] / "extensions" / "board" / "src" / "packed.ts").read_text()
    rows_of, points_of = unpacking.split("export function unpackPoints")
    assert set(re.findall(r'read\("(\w+)"\)', rows_of)) == INTERFACES["Row"]
    assert set(re.findall(r'read\("(\w+)"\)', points_of)) == INTERFACES["Point"]
