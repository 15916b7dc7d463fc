"""``bench calibrate``: measures the corpus of honest and dishonest kernels against the judge's bounds."""

from __future__ import annotations

import argparse
import json
import sys

from workbench.errors import MisuseError


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``bench calibrate`` understands."""
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--ops", default="", metavar="A,B", help="only these ops")
    parser.add_argument("--write", action="store_true", help="keep the table beside the judge, where its constants are held against it")
    parser.add_argument("--json", action="store_true", help="the table as one JSON object on stdout")


def calibrate(options: argparse.Namespace) -> int:
    """0 where every honest kernel passes and no dishonest one does, both with room."""
    from workbench.bench import calibrate as harness
    from workbench.bench.honest.experts import OPS
    from workbench.bench.honest.kernels import corpus

    ops = [name.strip() for name in options.ops.split(",") if name.strip()]
    known = [*(op.name for op in corpus()), *OPS]
    if unknown := [name for name in ops if name not in known]:
        raise MisuseError(f"--ops {','.join(unknown)}: there is {', '.join(known)}")
    if options.write and ops:
        raise MisuseError("--write keeps the whole table: leave --ops out")
    table = harness.run(options.device, ops, progress=lambda line: print(line, file=sys.stderr, flush=True))
    if options.write:
        harness.write(table)
    print(json.dumps(table) if options.json else harness.markdown(table))
    found = table["summary"]
    room = max(found["honest_worst"].values()) <= harness.HONEST_AT_MOST and found["dishonest_best"] >= harness.DISHONEST_AT_LEAST
    return 0 if room else 1
