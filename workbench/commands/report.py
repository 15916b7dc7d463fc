"""``report RUN --html FILE``: a run as one page to keep, send or print."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.errors import MisuseError


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``report`` understands."""
    parser.add_argument("run", metavar="RUN", help="its id, the beginning of it, or last")
    parser.add_argument("--html", type=Path, metavar="FILE", required=True, help="where the page is written; - for stdout")


def report(options: argparse.Namespace) -> int:
    """Writes the page. It needs no judge, no GPU and no network, and neither does who reads it."""
    from workbench.evolution import open_run
    from workbench.notebook.report import render
    from workbench.store import open_default

    page = render(open_run(open_default(Path.cwd()), options.run))
    if str(options.html) == "-":
        sys.stdout.write(page)
        return 0
    try:
        options.html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"{options.html}: {error.strerror}: give a file that can be written") from None
    print(f"{options.html}: {len(page.encode()) / 1024:.0f} KiB, opens in any browser", file=sys.stderr)
    return 0
