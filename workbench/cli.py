"""``python -m workbench …``: the product without a notebook, and what tests and benchmarks call.

Progress goes to stderr; with ``--json`` one object goes to stdout. Exit status: 0 for a right (or lower-precision) kernel, 1 for any
other outcome, 2 for a misuse or a broken reference.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.candidate import Backend
from workbench.commands import calibrate as calibration
from workbench.commands import evolve as evolving
from workbench.commands import experience as experiencing
from workbench.commands import judge as judgement
from workbench.commands import profile as profiling
from workbench.commands import prompt as prompting
from workbench.commands import report as reporting
from workbench.commands.evolve import in_us
from workbench.errors import MisuseError, WorkbenchError

PROGRAM = "python -m workbench"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        _check(options)
        return command(options)
    except MisuseError as error:
        return _fail(str(error), 2)
    except WorkbenchError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)


def _check(options: argparse.Namespace) -> None:
    """What argparse can't know: amounts that make no sense, and a GPU that is not there."""
    for name in ("steps", "seconds", "tokens", "money", "lanes", "evaluations", "seeds"):
        amount = getattr(options, name, None)
        if amount is not None and not amount > 0:
            raise MisuseError(f"--{name} {amount}: give more than 0, or leave it out")
    if getattr(options, "device", None) == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise MisuseError("--device cuda: no GPU answers here: leave --device out, or run it where there is one")


def _fail(message: str, status: int) -> int:
    print(f"workbench: {message}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Make GPU kernels fast: search, judge, verify.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    evolve = commands.add_parser("evolve", help="search for a fast kernel for the op in a file")
    evolve.set_defaults(command=evolving.evolve)
    evolving.add_options(evolve)

    prompt = commands.add_parser("prompt", help="print the prompt of a stored step, with its tokens")
    prompt.set_defaults(command=prompting.prompt)
    prompting.add_options(prompt)

    profile = commands.add_parser("profile", help="the ops of a script by time, and what each could gain")
    profile.set_defaults(command=profiling.profile)
    profiling.add_options(profile)

    report = commands.add_parser("report", help="a run as one HTML page")
    report.set_defaults(command=reporting.report)
    reporting.add_options(report)

    judge = commands.add_parser("judge", help="judge one candidate against a reference")
    judge.set_defaults(command=judgement.judge)
    judgement.add_options(judge)

    verify = commands.add_parser("verify", help="judge an accepted kernel again, against its evidence")
    verify.set_defaults(command=_verify)
    verify.add_argument("file", metavar="FILE", type=Path)
    verify.add_argument("--json", action="store_true")

    runs = commands.add_parser("runs", help="what lies in the store")
    runs.set_defaults(command=_runs)
    runs.add_argument("--json", action="store_true")

    clean = commands.add_parser("clean", help="remove runs from the store")
    clean.set_defaults(command=_clean)
    clean.add_argument("run", nargs="*", help="ids of runs")
    clean.add_argument("--older-than", type=float, metavar="DAYS")

    experience = commands.add_parser("experience", help="what runs have taught: list, show, export, import")
    experiencing.add_options(experience)

    bench = commands.add_parser("bench", help="benchmarks")
    kinds = bench.add_subparsers(required=True, metavar="KIND")
    experts = kinds.add_parser("experts", help="the built-in kernels against eager, torch.compile and the floor")
    experts.set_defaults(command=_bench_experts)
    experts.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    experts.add_argument("--ops", default="", metavar="A,B", help="only these ops")
    experts.add_argument("--mode", choices=("quick", "full"), default="full")
    experts.add_argument("--backends", choices=("triton", "cuda", "both"), default="triton", help="of the experts (default %(default)s)")
    experts.add_argument("--evaluations", type=int, default=40, metavar="N", help="of one op at most (default %(default)s)")
    experts.add_argument("--reference", type=Path, action="append", default=[], metavar="FILE", help="a reference file in place of the ops")
    experts.add_argument("--kernelbench", type=Path, metavar="DIR", help="every task of a KernelBench checkout, several at a time")
    experts.add_argument("--level", type=int, default=1, help="of KernelBench (default %(default)s)")
    experts.add_argument("--tasks", default="", metavar="N,M", help="only KernelBench tasks of these numbers")
    experts.add_argument("--jobs", type=int, metavar="N", help="KernelBench tasks at a time (default: a third of the cores)")
    experts.add_argument("--out", type=Path, metavar="DIR", help="write the table there after each op")
    experts.add_argument("--json", action="store_true")

    ranking = kinds.add_parser(
        "ranks", help="does the model rank variants as a GPU does: a table that `bench experts` measured, modelled here"
    )
    ranking.set_defaults(command=_bench_ranks)
    ranking.add_argument("table", metavar="FILE", type=Path, help="the .json that `bench experts --out DIR` wrote on a machine with a GPU")
    ranking.add_argument("--kernelbench", type=Path, metavar="DIR", help="the checkout, for a table of its tasks")
    ranking.add_argument("--level", type=int, default=1, help="of KernelBench (default %(default)s)")
    ranking.add_argument("--most", type=int, default=12, metavar="N", help="variants of one op (default %(default)s)")
    ranking.add_argument("--json", action="store_true")

    judging = kinds.add_parser("judge", help="how fast and how steady the judge is; with --redteam, cheats and honest kernels")
    judging.set_defaults(command=_bench_judge)
    judging.add_argument("--redteam", action="store_true", help="judge the red-team corpus of cheats and honest kernels")
    judging.add_argument("--judges", type=int, metavar="N", help="side by side, for the verdicts a minute (default: a third of the cores)")
    judging.add_argument("--candidates", type=int, default=15, metavar="N", help="of each kind (default %(default)s)")
    judging.add_argument("--repeats", type=int, default=50, metavar="N", help="judgements of one kernel (default %(default)s)")
    judging.add_argument("--extension", action="store_true", help="one that has nvcc build an extension, too, which takes a minute")
    judging.add_argument("--kernelbench", type=Path, metavar="DIR", help="a checkout of KernelBench, whose evaluation is shown beside")
    judging.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    judging.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only cases or ops whose name begins so; may be repeated"
    )
    judging.add_argument("--corpus", type=Path, metavar="DIR", help="where the cases are; the checkout's tests/redteam by default")
    judging.add_argument("--quick", action="store_true", help="leave out the cases that take long")
    judging.add_argument("--json", action="store_true")

    searching = kinds.add_parser(
        "search", help="what each mechanism of the search is worth, with a scripted programmer and recorded verdicts"
    )
    searching.set_defaults(command=_bench_search)
    searching.add_argument("--seeds", type=int, default=10, metavar="N", help="runs of each op in each arm (default %(default)s)")
    searching.add_argument("--evaluations", type=int, default=40, metavar="N", help="of one run at most (default %(default)s)")
    searching.add_argument("--ops", default="", metavar="A,B", help="only these ops")
    searching.add_argument("--rugged", action="store_true", help="made landscapes in place of the recorded ones")
    searching.add_argument(
        "--programmers", action="store_true", help="the mechanisms that rest most on who writes, under other programmers"
    )
    searching.add_argument("--record", type=Path, metavar="FILE", help="instead: judge the designs here, and write the table of verdicts")
    searching.add_argument("--json", action="store_true")

    showing = kinds.add_parser("board", help="the board with thousands of variants, in JupyterLab and a headless Chromium")
    showing.set_defaults(command=_bench_board)
    showing.add_argument("--variants", type=int, default=10_000, metavar="N", help="in the stored run (default %(default)s)")
    showing.add_argument("--json", action="store_true")

    calibrate = kinds.add_parser("calibrate", help="how near honest kernels come to the judge's bounds, and dishonest ones to passing")
    calibrate.set_defaults(command=calibration.calibrate)
    calibration.add_options(calibrate)

    doctor = commands.add_parser("doctor", help="what this machine can do")
    doctor.set_defaults(command=_doctor)
    return parser


def _verify(options: argparse.Namespace) -> int:
    from workbench.notebook.accept import verify
    from workbench.records import dumps

    if not options.file.exists():
        raise MisuseError(f"{options.file}: no such file: give the path of an accepted kernel")
    evaluation = verify(options.file)
    print(dumps(evaluation) if options.json else f"{evaluation.verdict.value}: {evaluation.reason or in_us(evaluation.timing)}")
    return 0 if evaluation.verdict.passes else 1


def _runs(options: argparse.Namespace) -> int:
    from workbench.store import open_default

    runs = [run.as_seen() for run in open_default(Path.cwd()).runs()]
    if options.json:
        from workbench.records import encode

        print(json.dumps(encode(runs)))
        return 0
    for run in runs:
        print(run)
    if not runs:
        print("no runs here yet")
    return 0


def _clean(options: argparse.Namespace) -> int:
    from workbench.store import open_default

    if not options.run and options.older_than is None:
        raise MisuseError("say what to remove: ids of runs, or --older-than DAYS")
    if options.older_than is not None and not options.older_than >= 0:
        raise MisuseError(f"--older-than {options.older_than:g}: give a number of days, 0 for every run")
    removed = open_default(Path.cwd()).clean(options.run, older_than_days=options.older_than)
    print(f"removed {len(removed)} runs: {', '.join(removed)}" if removed else "nothing to remove")
    return 0


def _bench_experts(options: argparse.Namespace) -> int:
    from workbench.bench import experts, kernelbench

    backends: Sequence[Backend] = ("triton", "cuda") if options.backends == "both" else (options.backends,)
    if options.kernelbench:
        try:
            only = [int(number) for number in options.tasks.split(",") if number.strip()]
        except ValueError:
            raise MisuseError(f"--tasks {options.tasks}: give numbers of tasks, like 23,36,40") from None
        table = kernelbench.run(
            options.kernelbench, level=options.level, only=only, jobs=options.jobs, device=options.device, evaluations=options.evaluations,
            out=options.out, backends=backends,
        )  # fmt: skip
        print(table.json() if options.json else table.markdown() + kernelbench.summary(table))
        return 0
    ops = [name for name in options.ops.split(",") if name] or None
    table = experts.run(
        options.device, ops, options.mode, options.out, evaluations=options.evaluations, references=options.reference,
        backends=backends,
    )  # fmt: skip
    print(table.json() if options.json else table.markdown())
    return 0


def _bench_ranks(options: argparse.Namespace) -> int:
    from workbench.bench.ranks import main as rank

    return rank(options.table, options.kernelbench, options.level, options.most, options.json)


def _bench_judge(options: argparse.Namespace) -> int:
    if not (options.redteam or options.only or options.corpus or options.quick):
        from workbench.bench.judge import main as measure

        return measure(
            options.device, options.judges, options.candidates, options.repeats, options.extension, options.kernelbench, options.json
        )  # fmt: skip
    from workbench.bench.redteam import main as judge_corpus

    return judge_corpus(options.device, options.corpus, options.only, options.json, options.quick)


def _bench_search(options: argparse.Namespace) -> int:
    ops = [name for name in options.ops.split(",") if name]
    if options.record:
        from workbench.bench.landscape import RECORDED, record

        record(options.record, ops or RECORDED)
        return 0
    from workbench.bench.search import main as compare

    return compare(options.seeds, options.evaluations, ops, options.json, options.rugged, options.programmers)


def _bench_board(options: argparse.Namespace) -> int:
    from workbench.bench.board import main as measure

    if options.variants < 20:
        raise MisuseError(f"--variants {options.variants}: give at least 20, or there is nothing to scroll")
    return measure(options.variants, options.json)


def _doctor(options: argparse.Namespace) -> int:
    from workbench.doctor import report

    return 0 if report(print) else 1
