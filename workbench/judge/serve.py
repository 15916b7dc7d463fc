"""The judge as a process: ``python -m workbench.judge.serve``, JSON lines on stdin and stdout.

The first line is the task. Then each request has a number and gets one answer:

    {"task": …, "device": "auto", "seed": null}
    {"number": 1, "do": "prepare", "probe": …}          -> {"number": 1, "result": Prepared} or {"number": 1, "error": …, "kind": …}
    {"number": 2, "do": "evaluate", "candidate": …, …}  -> {"number": 2, "result": Evaluation}
    {"number": 3, "do": "measured"}                     -> what the baselines take, for another judge of the same card to "adopt"
    {"number": 3, "do": "turn", "task": …, "device": …} -> {"number": 3, "result": null}: from now on another task
    {"number": 4, "do": "rest"} -> {"number": 4, "result": null}: gives back what it holds of the card; a turn comes next
    {"do": "cancel"}                                    ends what runs now; its answer says so

It ends at the end of stdin, and takes its workers along. Nothing but answers goes to the real stdout: what the reference prints goes to
stderr.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

from workbench.errors import CaptureError, MisuseError, WorkbenchError
from workbench.records import decode, encode


def main() -> None:
    """Serves until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
    first = sys.stdin.readline()
    if not first.strip():
        return
    holder: dict[str, Any] = {}
    threading.Thread(target=_read, args=(sys.stdin, requests, holder), name="requests", daemon=True).start()
    try:
        _serve(json.loads(first), requests, holder, answers)
    finally:
        _end(holder)


def _serve(settings: Mapping[str, Any], requests: queue.Queue[dict[str, Any] | None], holder: dict[str, Any], answers: IO[str]) -> None:
    from workbench.candidate import Candidate, Evaluation
    from workbench.events import Prepared
    from workbench.judge.inspection.sanitized import Sanitized
    from workbench.judge.isolation import sandbox
    from workbench.judge.isolation.pool import Nursery
    from workbench.judge.judge import Judge
    from workbench.judge.trial import Limits
    from workbench.task import Task

    nursery = holder["nursery"] = Nursery(sandbox.detect())

    def begin(told: Mapping[str, Any]) -> None:
        _rest(holder)
        holder["judge"] = Judge(
            decode(Task, told["task"]), device=told.get("device", "auto"), seed=settings.get("seed"),
            limits=Limits(**settings.get("limits", {})), baselines=settings.get("baselines"), nursery=nursery,
        )  # fmt: skip

    begin(settings)
    _warm_up()
    while (request := requests.get()) is not None:
        try:
            judge: Any = holder.get("judge")
            if judge is None and request["do"] not in ("turn", "rest"):
                raise MisuseError("the judge rests: it gets a task by turn")
            if request["do"] == "prepare":
                result: Prepared | Evaluation | Sanitized | Mapping[str, Any] | None = judge.prepare(request.get("probe"))
            elif request["do"] == "evaluate":
                result = judge.evaluate(
                    decode(Candidate, request["candidate"]), request["parameters"], id=request["id"], mode=request["mode"]
                )  # fmt: skip
            elif request["do"] == "sanitize":
                result = judge.sanitize(decode(Candidate, request["candidate"]), request["parameters"])
            elif request["do"] == "turn":
                del judge  # else its tensors would stay
                begin(request)
                result = None
            elif request["do"] == "rest":
                del judge
                _rest(holder)
                result = None
            elif request["do"] == "measured":
                result = judge.measured()
            elif request["do"] == "adopt":
                judge.adopt(request["measured"])
                result = None
            else:
                raise MisuseError(f"the judge can't {request['do']!r}")
            answer = {"result": encode(result)}
        except WorkbenchError as error:
            answer = {"error": str(error), "kind": type(error).__name__}
        except Exception as error:  # the reference may raise anything
            import traceback

            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}", "kind": CaptureError.__name__ if request["do"] == "prepare" else ""}
        print(json.dumps(answer | {"number": request["number"]}), file=answers, flush=True)


def _read(stdin: IO[str], requests: queue.Queue[dict[str, Any] | None], holder: dict[str, Any]) -> None:
    """Passes requests on; cancelling and the end of the input don't wait for what runs."""
    for line in stdin:
        request = json.loads(line)
        if request.get("do") == "cancel":
            if judge := holder.get("judge"):
                judge.cancel()
        else:
            requests.put(request)
    _end(holder)
    os._exit(0)  # the main thread may be deep in a computation


def _rest(holder: dict[str, Any]) -> None:
    """Ends the judge of a task, and gives back what it holds of a card."""
    judge = holder.pop("judge", None)
    if judge is None:
        return
    judge.close()
    del judge
    gc.collect()  # a module and its closures hold each other
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.modules["torch"].cuda.empty_cache()


def _end(holder: dict[str, Any]) -> None:
    if judge := holder.pop("judge", None):
        judge.close()
    if nursery := holder.pop("nursery", None):
        nursery.close()


def _warm_up() -> None:
    """Imports what the first judging would otherwise wait for."""
    from workbench.judge.correctness import orders, qualify  # noqa: F401

    orders.prepare()


if __name__ == "__main__":
    main()
