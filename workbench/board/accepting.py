"""Accept, as the board does it: judged again in the background, the code sent to the one browser that asked.

A full judging takes seconds to minutes, so it runs on a thread of its own. The answer goes to every browser (widgets know no
other way), but bears the request's id, and only the view that made the request changes its notebook.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from workbench.board.contract import Accepting, Applied, Send
from workbench.errors import ConsentNeededError, WorkbenchError
from workbench.records import encode


class Accepts:
    """One accept at a time."""

    def __init__(self, accept: Accepting | None, applied: Applied | None, send: Send, widget: str) -> None:
        self._accept = accept
        self._applied = applied
        self._send = send
        self._widget = widget
        self._busy = threading.Lock()

    def begin(self, request: str, candidate: str, place: str, consent: bool) -> None:
        """Starts judging; every outcome is a message."""
        if self._accept is None:
            self._tell(request, candidate, place, "refused", "this board was made without accept; use workbench.accept")
        elif not self._busy.acquire(blocking=False):
            self._tell(request, candidate, place, "refused", "another variant is being judged for accept; wait for it")
        else:
            arguments = (self._accept, request, candidate, place, consent)
            threading.Thread(target=self._judge, args=arguments, name=f"accept {candidate}", daemon=True).start()

    def acknowledge(self, candidate: str, outcome: dict[str, Any]) -> None:
        """Passes on what the browser did with the code."""
        if self._applied is not None:
            threading.Thread(target=self._applied, args=(candidate, outcome), name=f"accepted {candidate}", daemon=True).start()

    def _judge(self, accept: Accepting, request: str, candidate: str, place: str, consent: bool) -> None:
        try:
            self._tell(request, candidate, place, "judging", f"Judging {candidate} once more, with new seeds in a fresh process…")
            made = accept(candidate, place, consent=True) if consent else accept(candidate, place)
            self._tell(request, candidate, place, "ready", str(made.get("message", "")), made)
        except ConsentNeededError as error:
            self._tell(request, candidate, place, "refused", error.to, needs=True)
        except WorkbenchError as error:
            self._tell(request, candidate, place, "refused", str(error))
        except Exception as error:  # what went wrong must reach the person who waits, whatever it is
            self._tell(request, candidate, place, "refused", f"accepting failed ({type(error).__name__}: {error})")
        finally:
            self._busy.release()

    def _tell(
        self, request: str, candidate: str, place: str, stage: str, message: str, made: Mapping[str, Any] | None = None, needs: bool = False
    ) -> None:
        made = made or {}
        self._send({
            "type": "accept", "request": request, "id": candidate, "place": place, "stage": stage, "message": message,
            "code": made.get("code", ""), "cell": made.get("cell", ""), "expected_hash": made.get("expected_hash", ""),
            "provenance": encode(made.get("provenance") or {}), "widget": self._widget, "consent": needs,
        })  # fmt: skip
