"""``evolve REF.py``: a search from start to end, with the experts, with models, or with both."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.search.mechanisms import SWITCHES, Mechanisms

COLUMNS = 110
"""Of a line of progress at most."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``evolve`` understands."""
    parser.add_argument("reference", metavar="REF.py", help="a KernelBench file, or one function and get_inputs()")
    parser.add_argument(
        "--proposer", metavar="NAME", help="who writes: experts, llm or experts,llm (default: the experts, and models if any)"
    )
    parser.add_argument("--model", metavar="A,B", help="language models to ask, at OPENAI_BASE_URL with OPENAI_API_KEY")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="evaluations at most (default %(default)s)")
    parser.add_argument("--seconds", type=float, metavar="S", help="wall time at most")
    parser.add_argument("--tokens", type=int, metavar="T", help="tokens of the models at most, prompts included")
    parser.add_argument("--money", type=float, metavar="USD", help="USD for the models at most")
    parser.add_argument("--lanes", type=int, metavar="N", help="candidates on their way at once (default: one, three with models)")
    parser.add_argument("--target", help="what to compile for, such as cuda:90 or hip:gfx942 (default: the GPU here, else cuda:90)")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="where candidates run")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the search (default %(default)s)")
    parser.add_argument(
        "--accept-degenerate", action="store_true", help="search even if the judge can't tell bad answers from good ones on this op"
    )
    parser.add_argument("--without", default="", metavar="A,B", help=f"mechanisms of the search to turn off: {', '.join(SWITCHES)}")
    parser.add_argument(
        "--with", default="", dest="also", metavar="A,B", help="those to turn on that the defaults leave off, such as islands"
    )
    parser.add_argument("--no-store", action="store_true", help="keep nothing (a bare GPU node has no SQLAlchemy)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the best kernel and the run's summary there")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def evolve(options: argparse.Namespace) -> int:
    """Runs the search to its end; 0 where the best candidate is right."""
    from workbench import evolution
    from workbench.brief import Budget

    proposers = evolution.choose_proposers(options.proposer, options.model, tokens=options.tokens, money=options.money)
    from workbench.capture import capture_file

    mechanisms = Mechanisms().having(*_names(options.also)).without(*_names(options.without))
    captured = capture_file(options.reference, target=options.target)
    store = None
    if not options.no_store:
        from workbench.store import open_default

        store = open_default(Path.cwd())
    run = evolution.start(
        captured,
        budget=Budget(evaluations=options.steps, seconds=options.seconds, tokens=options.tokens, money=options.money),
        proposers=proposers,
        store=store,
        seed=options.seed,
        device=options.device,
        lanes=options.lanes,
        mechanisms=mechanisms,
        auto=True,
        accept_degenerate=options.accept_degenerate,
    )
    run.subscribe(_progress(captured.task))
    try:
        run.wait()
    finally:
        run.close()
    summary = run.summary()
    for one in summary["models"]:
        _tell(_bill(one))
    if options.out:
        _write_result(options.out, run, summary)
    if options.json:
        print(json.dumps(summary))
    best = run.best
    return 0 if best is not None and best.evaluation.verdict.passes else 1


def _progress(task: Any) -> Callable[[Any], None]:
    from workbench import events

    def show(stamped: events.Stamped) -> None:
        match stamped.event:
            case events.Prepared(floor_us=floor, baselines=baselines, device=device):
                _tell(
                    f"{task.name} on {device}: floor {floor:.1f} µs" + "".join(f", {base.name} {in_us(base.timing)}" for base in baselines)
                )
            case events.Proposed(proposal=proposal) if proposal.candidate is None:
                _tell(f"  {proposal.brief:<7} no candidate: {proposal.reason}")
            case events.Evaluated(evaluation=one):
                tune = " ".join(f"{name}={value}" for name, value in one.parameters.items())
                _tell(shortened(f"  {one.id:<7} {one.verdict.value:<16} {in_us(one.timing):>22}  {tune or one.reason}"))
            case events.Noted(message=message, level=level) if level != "lesson":
                _tell(f"  {message}")
            case events.Ended(reason=reason, best=best):
                _tell(f"ended: {reason}; best {best or 'none'}")

    return show


def shortened(line: str) -> str:
    """The line within the columns of a terminal, and one line whatever a reason holds."""
    line = " ".join(line.splitlines())
    return line if len(line) <= COLUMNS else line[: COLUMNS - 1].rstrip() + "…"


def in_us(timing: Any) -> str:
    """A time for people; one that was not measured says so."""
    if timing is None:
        return "–"
    return f"{timing.median_us:.1f} µs" + (" modelled" if timing.modelled else "")


def _bill(one: dict[str, Any]) -> str:
    """What one model was asked and took."""
    failed = f" ({one['failed']} failed)" if one["failed"] else ""
    money = "price not known" if one["money"] is None else f"{one['money']:.4f} USD"
    about = "about " if one["estimated"] else ""
    tokens = f"{one['tokens_in']:,} + {one['tokens_out']:,}"
    return f"{one['model']}: {one['calls']} calls{failed}, {about}{tokens} tokens, {money}, {one['seconds']:.0f} s"


def _write_result(folder: Path, run: Any, summary: dict[str, Any]) -> None:
    from workbench.build.tune import choose

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1))
    if run.best is not None:
        (folder / "best.py").write_text(choose(run.best.candidate.source, run.best.evaluation.parameters))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
