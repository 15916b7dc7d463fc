"""The board: a run as a person sees and steers it, in one widget.

`Board` is an anywidget, so it shows in JupyterLab, Notebook, VS Code, Colab and marimo. Widgets are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.board.widget import Board

__all__ = ["Board"]


def __getattr__(name: str) -> Any:
    if name == "Board":
        from workbench.board.widget import Board

        return Board
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
