"""A stored run whose process is gone says so, can be looked at and added to, and goes on by resume."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose

from workbench import evolution
from workbench.brief import Budget
from workbench.candidate import Evidence
from workbench.events import AcceptedCandidate, Noted, StateChanged
from workbench.store import MemoryStore, Store
from workbench.store.owners import runs_here

HERE = Path(__file__).parent
GONE = "the process that ran it is gone: resume() goes on where the store ends"

SCRIPT = """
    import sys
    from scripted_fleet import TASK, ScriptedFleet, ScriptedProposer, diagnose
    from workbench import evolution
    from workbench.brief import Budget
    from workbench.store import Store
    run = evolution.start(TASK, fleet=lambda: ScriptedFleet(seconds=lambda name: 60 if name == "k4" else 0), diagnose=diagnose,
                          proposers=(ScriptedProposer(),), auto=True, store=Store(sys.argv[1]), budget=Budget(evaluations=9))
    run.subscribe(lambda one: print(one.type, getattr(one.event, "brief", ""), flush=True))
    run.wait()
"""


@pytest.fixture
def running(tmp_path):
    """A process in the middle of a run, and the store that it writes to."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(Path.cwd())))}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    judged = 0
    while judged < 3:
        judged += process.stdout.readline().startswith("Evaluated")
    yield process, Store(tmp_path)
    process.kill()
    process.wait(10)
    process.stdout.close()


def opened(store, name="last"):
    return evolution.open_run(store, name, proposers=(ScriptedProposer(),), fleet=ScriptedFleet, diagnose=diagnose)


def test_while_its_process_lives_it_runs_and_after_kill_9_it_is_interrupted_until_it_goes_on(running):
    process, store = running
    elsewhere = opened(store)
    assert elsewhere.state == "running" and not elsewhere.alive
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    run = opened(store)
    assert (run.state, run.reason) == ("interrupted", GONE)
    assert (run.header()["state"], run.header()["reason"], run.summary()["state"]) == ("interrupted", GONE, "interrupted")
    assert "interrupted" in repr(run) and len(run.rows()) >= 3
    run.resume().wait(30)
    assert (run.state, run.reason) == ("ended", "budget: 9 of 9 evaluations are used")
    assert "interrupted" not in {one.event.state for one in run.events() if isinstance(one.event, StateChanged)}
    run.close()
    assert opened(store).state == "ended"


def test_looking_at_a_run_of_a_live_process_takes_nothing_from_it(running):
    process, store = running
    run = opened(store)
    evidence = Evidence(TASK.id, run.id, "k1", "s", "r", "a", run.candidate("k1").evaluation)
    owner = store.run(run.id).owner
    run.record(AcceptedCandidate(evidence, "code", "below"))
    assert store.run(run.id).owner == owner and run.rows()[0]["accepted"]
    assert store.events(run.id)[-1].event.code == "code"
    assert process.poll() is None


def test_a_note_on_a_run_that_was_only_opened_is_kept_and_seen(begin):
    store = MemoryStore()
    first, _ = begin(store=store, budget=Budget(evaluations=2), auto=True)
    first.wait(10)
    run = opened(store, first.id)
    seen = []
    run.subscribe(seen.append)
    run.record(Noted("looked at"))
    assert store.events(first.id)[-1].event == Noted("looked at") == seen[-1].event
    assert run.header()["notes"][-1]["message"] == "looked at"


def test_whose_process_lives():
    here = socket.gethostname()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert runs_here(f"{here}:{child.pid}:ab12cd")
    child.communicate(b"\n", timeout=20)
    assert not runs_here(f"{here}:{child.pid}:ab12cd")
    assert not runs_here(f"{here}:{os.getpid()}:ab12cd")  # this process knows its own runs by other means
    assert not any(map(runs_here, ("elsewhere:1:ab12cd", "", "nonsense", f"{here}:x:y")))
