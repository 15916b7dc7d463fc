"""``profile SCRIPT_OR_REF.py``: the ops by what they would gain."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``profile`` understands."""
    parser.add_argument("file", metavar="SCRIPT_OR_REF.py", type=Path, help="a script, or a reference with get_inputs")
    parser.add_argument("--target", help="what floors are for, such as cuda:90; this machine's GPU by default")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def profile(options: argparse.Namespace) -> int:
    """Runs the file once and prints the table. What the script prints goes to stderr where stdout is for the object."""
    import contextlib

    from workbench.notebook.profile_ops import profile_file

    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        found = profile_file(options.file, target=options.target)
    print(json.dumps(found.as_data()) if options.json else found)
    return 0 if found.regions else 1
