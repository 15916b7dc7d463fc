"""The inspector as a process: JSON lines on stdin and stdout, like `serve`.

    {"task": …, "device": "auto"}
    {"number": 1, "candidate": …, "parameters": …, "what": "compiler", "options": {}}   -> {"number": 1, "result": …}
    {"do": "cancel"}                                                                   ends what runs now; its answer says so

It ends at the end of stdin, and takes its workers along. Nothing but answers goes to the real stdout.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import IO, Any

from workbench.records import decode


def main() -> None:
    """Serves until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    first = sys.stdin.readline()
    if not first.strip():
        return
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    holder: dict[str, Any] = {}
    threading.Thread(target=_read, args=(sys.stdin, requests, holder), name="requests", daemon=True).start()

    from workbench.candidate import Candidate
    from workbench.judge.inspection.inspector import Inspector
    from workbench.task import Task

    settings = json.loads(first)
    inspector = holder["inspector"] = Inspector(decode(Task, settings["task"]), device=settings.get("device", "auto"))
    while True:
        request = requests.get()
        try:
            result = inspector.inspect(
                decode(Candidate, request["candidate"]), request["parameters"], request["what"], request["options"]
            )  # fmt: skip
        except Exception as error:  # ours, or the reference's, which may raise anything
            import traceback

            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
        print(json.dumps({"number": request["number"], "result": result}), file=answers, flush=True)


def _read(stdin: IO[str], requests: queue.Queue[dict[str, Any]], holder: dict[str, Any]) -> None:
    """Passes requests on; cancelling and the end of the input don't wait for what runs."""
    for line in stdin:
        request = json.loads(line)
        if request.get("do") == "cancel":
            if inspector := holder.get("inspector"):
                inspector.cancel()
        else:
            requests.put(request)
    if inspector := holder.pop("inspector", None):
        inspector.close()
    os._exit(0)  # the main thread may be deep in a computation


if __name__ == "__main__":
    main()
