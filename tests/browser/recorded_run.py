"""A run played back from its events: everything that the board asks of one, without a search or a judge behind it.

It lets a test decide when which event happens. Verbs are noted in `asked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench import events
from workbench.brief import Budget
from workbench.errors import MisuseError, NoSuchCandidateError
from workbench.events import Stamped
from workbench.records import encode


class RecordedRun:
    """`play` applies the next events and tells the subscribers."""

    def __init__(self, stamped: Sequence[Stamped], *, live: bool = True) -> None:
        self.id = stamped[0].run
        self.live = live
        self.live_reason = "" if live else "This run is read from the store; no judge is running. Resume starts one and goes on."
        self.asked: list[tuple[str, ...]] = []
        self._coming = list(stamped)
        self._events: list[Stamped] = []
        self._callbacks: list[Callable[[Stamped], None]] = []
        self._rows: dict[str, dict[str, Any]] = {}
        self._details: dict[str, dict[str, Any]] = {}
        self._briefs: dict[str, Any] = {}
        self._header: dict[str, Any] = {}
        self.play(1)

    def play(self, count: int | None = None) -> RecordedRun:
        """Lets the next `count` events happen; all of them by default."""
        now, self._coming = (self._coming, []) if count is None else (self._coming[:count], self._coming[count:])
        for stamped in now:
            self._apply(stamped)
            self._events.append(stamped)
            for callback in list(self._callbacks):
                callback(stamped)
        return self

    @property
    def task(self) -> Any:
        return self._started.task

    @property
    def cell_source(self) -> str:
        return self._started.cell_source

    @property
    def state(self) -> events.RunState:
        return self._header["state"]

    def subscribe(self, callback: Callable[[Stamped], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def events(self, after: int = 0) -> Sequence[Stamped]:
        return self._events[after:]

    def header(self) -> dict[str, Any]:
        return {**self._header, "candidates": len(self._rows), "live": self.live, "live_reason": self.live_reason}

    def rows(self, ids: Iterable[str] | None = None) -> list[dict[str, Any]]:
        return [dict(row) for row in self._rows.values()] if ids is None else [dict(self._rows[id]) for id in ids if id in self._rows]

    def candidate(self, id: str) -> dict[str, Any]:
        if id not in self._details:
            raise NoSuchCandidateError(f"the run has no candidate {id!r}")
        children = [row["id"] for row in self._rows.values() if id in row["parents"]]
        return {**self._details[id], "row": self._rows[id], "children": children}

    def _do(self, *asked: str) -> RecordedRun:
        if self.state == "ended":
            raise MisuseError("the run has ended; start a new one")
        self.asked.append(asked)
        return self

    def step(self, n: int = 1) -> RecordedRun:
        return self._do("step")

    def auto(self) -> RecordedRun:
        return self._do("auto")

    def pause(self) -> RecordedRun:
        return self._do("pause")

    def resume(self) -> RecordedRun:
        return self._do("resume")

    def stop(self) -> RecordedRun:
        return self._do("stop")

    def cancel(self) -> RecordedRun:
        return self._do("cancel")

    def hint(self, text: str) -> RecordedRun:
        return self._do("hint", text)

    def ban(self, text: str) -> RecordedRun:
        return self._do("ban", text)

    def pin(self, id: str) -> RecordedRun:
        return self._do("pin", id)

    def branch(self, id: str) -> RecordedRun:
        return self._do("branch", id)

    def submit(self, source: str, backend: Any = "triton") -> RecordedRun:
        return self._do("submit", source, str(backend))

    def _apply(self, stamped: Stamped) -> None:
        head = self._header
        match stamped.event:
            case events.RunStarted() as started:
                self._started = started
                task = started.task
                head.update(
                    run=stamped.run, name=task.name, state="preparing", reason="", target=task.target, device="", modelled=True,
                    precision=task.precision, inputs=encode(task.inputs), outputs=encode(task.outputs), bytes=task.work.bytes,
                    flops=task.work.flops, floor_us=None, eager=None, compile=None, best=None, budget=encode(started.budget),
                    spent=encode(Budget(0, 0.0, 0.0, 0, 0.0)), islands=[], proposers=list(started.proposers), hints=[], bans=[],
                    evaluations=0, cell=started.cell, notes=[], started_at=stamped.time,
                )  # fmt: skip
            case events.Prepared() as ready:
                named = {base.name: encode(base) for base in ready.baselines}
                head.update(
                    floor_us=ready.floor_us, device=ready.device, modelled=ready.device.startswith("no GPU"), eager=named.get("eager"),
                    compile=named.get("compile"), notes=list(ready.notes), state="waiting",
                )  # fmt: skip
            case events.Asked(brief=brief):
                self._briefs[brief.id] = brief
                if brief.island.name not in [island["name"] for island in head["islands"]]:
                    head["islands"].append({"name": brief.island.name, "aim": brief.island.aim})
            case events.Proposed(proposal=proposal) if proposal.candidate is not None:
                self._add(proposal.candidate, stamped)
            case events.Submitted(candidate=mine):
                self._add(mine, stamped)
            case events.Evaluated() as said:
                self._judge(said)
            case events.BestChanged() as best:
                evaluation = next(one for one in self._details[best.candidate]["evaluations"] if one["id"] == best.evaluation)
                timing = evaluation["timing"]
                head["best"] = {
                    "id": best.candidate, "evaluation": best.evaluation, "time_us": best.time_us, "low_us": timing["low_us"],
                    "high_us": timing["high_us"], "modelled": timing["modelled"], "speedup": evaluation["speedup"],
                }  # fmt: skip
            case events.Spent(spent=spent):
                head["spent"] = encode(spent)
            case events.Acted(verb="hint" | "ban" as verb, argument=argument):
                head["hints" if verb == "hint" else "bans"].append(argument)
            case events.StateChanged(state=state, reason=reason):
                head.update(state=state, reason=reason)

    def _add(self, candidate: Any, stamped: Stamped) -> None:
        brief = self._briefs.get(candidate.brief)
        self._rows[candidate.id] = {
            "id": candidate.id, "backend": candidate.backend, "kind": brief.kind if brief else "person", "verdict": "proposed", "reason": "",
            "evaluation": "", "evaluations": 0, "judged_by": "", "mode": "", "time_us": None, "low_us": None, "high_us": None,
            "modelled": False, "speedup": None, "against": "", "headroom": None, "diagnosis": "", "limiter": "", "island": candidate.island,
            "proposer": candidate.proposer, "plan": candidate.plan, "parents": list(candidate.parents), "parameters": {}, "labels": [],
            "order": len(self._rows) + 1, "at": stamped.time - self._header["started_at"], "pinned": False, "accepted": False,
        }  # fmt: skip
        said = {"id": brief.id, "kind": brief.kind, "directive": brief.directive, "island": brief.island.name} if brief else {}
        self._details[candidate.id] = {
            "candidate": encode(candidate), "evaluations": [], "diagnoses": {},
            "brief": {"id": "", "kind": "person", "directive": "", "island": "", "expert": {}, "hints": [], "bans": [], **said},
        }  # fmt: skip

    def _judge(self, said: events.Evaluated) -> None:
        evaluation, diagnosis = said.evaluation, said.diagnosis
        self._header["evaluations"] += 1
        detail, row = self._details[evaluation.candidate], self._rows[evaluation.candidate]
        detail["evaluations"].append(encode(evaluation))
        if diagnosis is not None:
            detail["diagnoses"][evaluation.id] = encode(diagnosis)
        row["evaluations"] += 1
        if row["verdict"] == "right" and not (evaluation.time_us is not None and evaluation.time_us < row["time_us"]):
            return
        timing, speedup = evaluation.timing, evaluation.speedup
        row.update(
            verdict=evaluation.verdict.value, reason=evaluation.reason, evaluation=evaluation.id, judged_by=evaluation.judged_by,
            mode=evaluation.mode, time_us=timing and timing.median_us, low_us=timing and timing.low_us, high_us=timing and timing.high_us,
            modelled=timing is not None and timing.modelled, speedup=speedup and speedup.ratio, against=speedup.against if speedup else "",
            headroom=diagnosis and diagnosis.headroom, diagnosis=diagnosis.kind if diagnosis else "",
            limiter=evaluation.modelled.limiter if evaluation.modelled else "", parameters=encode(evaluation.parameters),
            labels=list(evaluation.labels),
        )  # fmt: skip
