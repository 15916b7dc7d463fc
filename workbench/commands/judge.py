"""``judge REF.py CAND.py``: one candidate against a reference, with a fresh judge, and how to see it again."""

from __future__ import annotations

import argparse
import ast
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.commands.evolve import in_us
from workbench.errors import MisuseError

if TYPE_CHECKING:
    from workbench.candidate import Evaluation
    from workbench.events import Prepared


def add_options(parser: argparse.ArgumentParser) -> None:
    """What ``judge`` understands."""
    parser.add_argument("reference", metavar="REF.py", help="a KernelBench file, or one function and get_inputs()")
    parser.add_argument("candidate", metavar="CAND.py", help="a module that defines the reference's function, or class ModelNew")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--target", help="what to compile for where there is no GPU, such as cuda:90")
    parser.add_argument("--precision", choices=("match", "tf32", "half"), default="match", help="what the candidate may compute in")
    parser.add_argument("--mode", choices=("quick", "full"), default="full")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="choose a value of the candidate's TUNE")
    parser.add_argument("--seed", type=int, metavar="N", help="replay a judging: the same inputs; such a judgement is never accepted")
    parser.add_argument(
        "--accept-degenerate", action="store_true", help="judge it even if bad answers can't be told from good ones on this op"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def judge(options: argparse.Namespace) -> int:
    """Judges; 0 where the candidate is right, or right in lower precision."""
    from workbench.candidate import Candidate, Verdict
    from workbench.capture import capture_file
    from workbench.fleet import judge_once

    source, parameters = _source(Path(options.candidate)), _chosen(options.set)
    if options.seed is not None and not 0 <= options.seed < 1 << 63:
        raise MisuseError(f"--seed {options.seed}: give a number from 0 to 2^63 - 1")
    captured = capture_file(options.reference, target=options.target, precision=options.precision)
    candidate = Candidate("k1", _backend(source), source, captured.task.candidate_entry, proposer="person")
    task = captured.task
    if task.format == "model":
        task = replace(task, state="free")  # an answer to KernelBench is judged as it is, and KernelBench looks at no buffers
    prepared, evaluation = judge_once(
        task, candidate, parameters, id="k1.1", mode=options.mode, device=options.device, seed=options.seed,
        accept_degenerate=options.accept_degenerate,
    )  # fmt: skip
    again = _replay(options, evaluation)
    if options.json:
        print(json.dumps(_as_json(prepared, evaluation, again)))
    else:
        judged_by = f"  (judged by {evaluation.judged_by})" if evaluation.judged_by else ""
        print(f"{evaluation.verdict.value}: {evaluation.reason or in_us(evaluation.timing)}{judged_by}")
        for line in _witness_lines(evaluation, again):
            print(f"  {line}")
        if evaluation.labels:
            print(f"  labels: {'; '.join(evaluation.labels)}")
    return 0 if evaluation.verdict in (Verdict.RIGHT, Verdict.LOWER_PRECISION) else 1


def _as_json(prepared: Prepared, evaluation: Evaluation, again: str) -> dict[str, Any]:
    from workbench.records import encode

    timing = evaluation.timing
    witness = encode(evaluation.witness)
    return {
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "witness": witness | {"replay": again} if witness is not None else None,
        "replay": again,
        "labels": list(evaluation.labels),
        "runtime_us": encode(timing and timing.median_us),
        "baselines_us": {base.name: encode(base.timing and base.timing.median_us) for base in prepared.baselines},
        "speedup": encode(evaluation.speedup),
        "floor_us": prepared.floor_us,
        "modelled": timing is None or timing.modelled,
        "qualification": encode(prepared.qualification),
        "notes": list(prepared.notes),
        "evaluation": encode(evaluation),
    }


def _witness_lines(evaluation: Evaluation, again: str) -> list[str]:
    """Where it is wrong, and the command that shows it again."""
    witness = evaluation.witness
    if witness is None:
        return []
    lines = []
    if witness.got is not None:
        place = f"output {witness.output} at {list(witness.index)}" if witness.index else f"output {witness.output}"
        bound = f", off by at most {witness.bound:.3g} is right" if witness.bound else ""
        lines.append(f"{place} on {witness.input_set} (seed {witness.seed}): got {witness.got:.9g}, expected {witness.expected:.9g}{bound}")
    else:
        lines.append(f"on {witness.input_set} (seed {witness.seed}){f': {witness.pattern}' if witness.pattern else ''}")
    return [*lines, f"again: {again}"] if again else lines


def _replay(options: argparse.Namespace, evaluation: Evaluation) -> str:
    """The command that judges on the very same inputs; empty where none were drawn."""
    if evaluation.replay is None:
        return ""
    words = ["python", "-m", "workbench", "judge", str(options.reference), str(options.candidate), "--seed", str(evaluation.replay)]
    for name in ("device", "target", "precision", "mode"):
        value = getattr(options, name)
        if value is not None and value != {"device": "auto", "precision": "match", "mode": "full"}.get(name):
            words += [f"--{name}", value]
    for setting in options.set:
        words += ["--set", setting]
    if options.accept_degenerate:
        words.append("--accept-degenerate")
    return shlex.join(words)


def _source(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise MisuseError(f"{path}: {error.strerror}: give the path of a candidate") from None
    except UnicodeDecodeError:
        raise MisuseError(f"{path} is no text: give the path of a candidate, a Python module") from None


def _backend(source: str) -> Any:
    """``cuda`` for a module that has the literals ``CUDA`` and ``KERNELS``, whatever its comments say."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return "triton"  # the judge says what is wrong with it
    assigned = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)}
    return "cuda" if {"CUDA", "KERNELS"} <= assigned else "triton"


def _chosen(settings: Sequence[str]) -> dict[str, Any]:
    chosen = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        try:
            if not equals:
                raise ValueError
            chosen[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise MisuseError(f"--set {setting}: write NAME=VALUE with a literal, such as --set BLOCK=128") from None
    return chosen
