"""The checks on single calls: each asks a worker for one thing, and ends the trial if what comes back is not right.

Nothing that a worker says is believed where it could be checked: outputs are read as bytes of the size and dtype that the judge expects.
Claims (an input was changed, something was written beside a tensor) can only harm the candidate that makes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from workbench.candidate import Verdict, Witness
from workbench.capture.references import Reference
from workbench.judge.correctness.ahead import Ahead, Draw
from workbench.judge.correctness.compare import Comparison, compare
from workbench.judge.correctness.expected import Error, Expected, same
from workbench.judge.correctness.grid import Grid
from workbench.judge.correctness.inputsets import InputSet, listed
from workbench.judge.correctness.truth import clone
from workbench.judge.isolation.process import Worker
from workbench.judge.protocol import fingerprint
from workbench.judge.protocol.form import form
from workbench.judge.protocol.shared import layout, needed
from workbench.judge.trial import Stop, Trial, Unsupported
from workbench.records import encode

_BUILD_ERRORS = {"CompilationError", "OutOfResources", "PTXASError", "BuildError", "NVRTCError"}
_UNSUPPORTED = {"NotImplementedError", "ValueError", "TypeError", "AssertionError"}


@dataclass
class Caller:
    """Calls a candidate in its worker and compares what it returns. `allowed` is the round-off that the policy allows."""

    trial: Trial
    worker: Worker
    reference: Reference
    device: str
    timeout: float
    allowed: float = 0.0
    calls: int = 0
    last: Draw | None = None
    grids: dict[int, Grid] = field(default_factory=dict)
    """Of each output: whether its results have all the bits that they should."""
    _ahead: Ahead | None = field(default=None, init=False, repr=False)

    def check(
        self, kind: InputSet, *, poison: str, rewrite: bool = False, known: Sequence[Error] | None = None, draw: Draw | None = None
    ) -> tuple[Expected, list[torch.Tensor]]:
        """One call on fresh content, compared in full. Returns what was expected and what came.

        Args:
            poison: what fills uninitialised memory, see `arena`.
            rewrite: put the content behind the last call's pointers, where a cache by address would not notice.
            known: the honest errors, if inputs of this kind were seen before.
            draw: of an earlier call, to see the same inputs again.

        Raises:
            Stop: the candidate is not right.
            Unsupported: it refuses this shape, and may.
        """
        self.trial.drawn = True
        draw = self.last = draw or self.drawn().take(kind, int(rewrite))
        answer = self._call(draw, poison=poison, rewrite=rewrite, known=known)
        expected = draw.expect(known)
        witness = Witness(draw.seed, kind.name)
        check_memory(answer, kind, expected, witness)
        check_form(answer, expected, witness)
        self._check_container(answer, draw, witness)
        self._note_strides(answer, expected, kind)
        outputs = self._read(expected)
        for number, (output, right) in enumerate(zip(outputs, expected.outputs, strict=True)):
            found = compare(output, right, allowed=self.allowed)
            self.trial.compared(found.matched, found.ratio, found.precision)
            self.grids.setdefault(number, Grid(self.allowed)).add(output, right)
            if not found.right:
                raise Stop(Verdict.WRONG, _wrong(found, number, len(outputs), kind), _fill(witness, found, number))
        if kind.name not in self.trial.input_sets:
            self.trial.input_sets.append(kind.name)
        self.calls += 1
        return expected, outputs

    def check_kept(self, call: int, expected: Expected, outputs: Sequence[torch.Tensor], kind: InputSet) -> None:
        """The outputs of an earlier call must still hold what they held: a caller keeps them."""
        offsets, sizes = places(expected)
        self.worker.shared.clear()
        answer = self.worker.ask({"do": "outputs", "call": call, "offsets": offsets, "sizes": sizes}, self.timeout)
        kept = [pair for number, pair in enumerate(zip(outputs, self._read(expected), strict=True)) if number not in expected.aliased]
        if "error" in answer or not all(same(old, new) for old, new in kept):
            raise Stop(Verdict.WRONG, "a later call changed the outputs of an earlier one: they share memory", Witness(0, kind.name))

    def forget(self) -> None:
        """Drops what was worked out ahead: it no longer holds once the reference's parameters are others."""
        self._ahead = None

    def drawn(self) -> Ahead:
        """What is worked out ahead of its call."""
        if self._ahead is None:
            self._ahead = Ahead(self.trial.next_seed(), self.reference, self.device)
        return self._ahead

    def _call(self, draw: Draw, *, poison: str, rewrite: bool, known: Sequence[Error] | None) -> dict[str, Any]:
        kind, task = draw.kind, self.trial.task
        if draw.expected is None and kind.specs != task.inputs:
            draw.expect(known)  # else it is not known how large the outputs are
        sizes = [output.nbytes for output in task.outputs] if draw.expected is None else places(draw.expected)[1]
        message = {
            "do": "call", "inputs": encode(kind.specs), "seed": draw.seed, "digest": fingerprint.of_inputs(draw.inputs), "poison": poison,
            "rewrite": rewrite, "offsets": layout(sizes), "sizes": sizes, "sent": None,
            "random_seed": self.trial.next_seed() if self.reference.random else None, "shift": kind.shift,
            "exchanges": draw.exchanges,
        }  # fmt: skip
        self.worker.shared.clear()
        if kind.structure:
            message["sent"] = self._send(draw.inputs)
        self.worker.send(message, self.timeout)
        draw.expect(known)
        self.drawn().work(draw, self.worker.answered)
        answer = self.worker.receive(self.timeout)
        if answer.get("need") == "bytes" and message["sent"] is None:
            # Another build of PyTorch, or another kind of CPU, drew other values from the same seed.
            message["sent"] = self._send(draw.inputs)
            answer = self.worker.ask(message, self.timeout)
        if answer.get("need") == "bytes":
            raise Stop(Verdict.REFUSED, "its process does not see the inputs that it was sent")
        if "error" in answer:
            raise_error(
                answer["error"], listed=not kind.optional and (kind.own_shape or listed(self.trial.task, kind.specs)), where=kind.name
            )
        return answer

    def _send(self, inputs: Sequence[Any]) -> list[int]:
        tensors = [item.contiguous() for item in inputs if isinstance(item, torch.Tensor)]
        at = iter(layout([tensor.numel() * tensor.element_size() for tensor in tensors]))
        sent = []
        for item in inputs:
            if isinstance(item, torch.Tensor):
                sent.append(next(at))
                self.worker.shared.write(sent[-1], item)
            else:
                sent.append(-1)
        return sent

    def _read(self, expected: Expected) -> list[torch.Tensor]:
        offsets, _ = places(expected)
        return [
            self.worker.shared.read(offset, output.reference.shape, output.reference.dtype, self.device)
            for offset, output in zip(offsets, expected.outputs, strict=True)
        ]  # fmt: skip

    def _check_container(self, answer: Mapping[str, Any], draw: Draw, witness: Witness) -> None:
        """Once: a caller of the reference who unpacks a tuple, or asks a dict for a key, must be able to go on doing so."""
        if self.calls or self.reference.changes:
            return
        wanted = form(self.reference.call(*[clone(item) for item in draw.inputs]))
        if answer.get("form") != wanted:
            raise Stop(Verdict.WRONG, f"returns {str(answer.get('form'))[:200]} where the reference returns {wanted}", witness)

    def _note_strides(self, answer: Mapping[str, Any], expected: Expected, kind: InputSet) -> None:
        for claim, output in zip(answer["outputs"], expected.outputs, strict=True):
            real = [(size, stride) for size, stride in zip(output.reference.shape, output.reference.stride(), strict=True) if size > 1]
            try:
                got = [(size, int(stride)) for size, stride in zip(output.reference.shape, claim["strides"], strict=True) if size > 1]
            except (KeyError, TypeError, ValueError):
                continue
            if got != real:
                self.trial.labels.add("output strides differ from the reference's")
        if answer.get("aliases") and not expected.aliased:
            self.trial.labels.add("returns the memory of an input")
        if expected.mutated and not answer.get("changed"):
            self.trial.labels.add(f"leaves {kind.specs[expected.mutated[0]].name} as it is, which the reference changes")


def places(expected: Expected) -> tuple[list[int], list[int]]:
    """Where each output goes in the shared memory, and its bytes."""
    sizes = [output.reference.numel() * output.reference.element_size() for output in expected.outputs]
    return layout(sizes), sizes


def shared_bytes(nbytes: Sequence[int]) -> int:
    """Size of a shared memory that is large enough for tensors of these sizes, with room for inputs or outputs of other sets."""
    return max(64 << 20, 2 * needed(list(nbytes)))


def check_memory(answer: Mapping[str, Any], kind: InputSet, expected: Expected, witness: Witness) -> None:
    """Nothing was written beside a tensor, and no input was changed that the reference leaves alone."""
    if stray := answer.get("stray"):
        raise Stop(Verdict.WRONG, f"writes {str(stray)[:80]} (a missing mask?)", replace(witness, pattern="written outside of a tensor"))
    may = {kind.specs[position].name for position in expected.mutated}
    changed = [name for name in answer.get("changed") or () if isinstance(name, str) and name not in may]
    if changed:
        raise Stop(
            Verdict.WRONG,
            f"changes its input {changed[0][:60]}, which the reference leaves alone",
            replace(witness, pattern="input changed"),
        )


def check_form(answer: Mapping[str, Any], expected: Expected, witness: Witness) -> None:
    """As many plain tensors as the reference returns, of the same shapes and dtypes."""
    claims = answer.get("outputs")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise Stop(Verdict.REFUSED, "its process sent what no worker sends")
    if answer.get("lazy"):
        raise Stop(Verdict.WRONG, f"returns a {str(answer['lazy'])[:60]}, which makes its tensors when it is walked", witness)
    if len(claims) != len(expected.outputs):
        raise Stop(Verdict.WRONG, f"returns {len(claims)} tensors where the reference returns {len(expected.outputs)}", witness)
    for number, (claim, output) in enumerate(zip(claims, expected.outputs, strict=True)):
        which = f"output {number} " if len(claims) > 1 else "the output "
        shape, dtype = tuple(output.reference.shape), str(output.reference.dtype).removeprefix("torch.")
        if claim.get("plain") is not True:
            raise Stop(Verdict.WRONG, f"{which}is not a plain tensor", witness)
        if claim.get("shape") != list(shape):
            raise Stop(
                Verdict.WRONG,
                f"{which}has shape {_shape(claim.get('shape'))} where {_shape(shape)} is right",
                replace(witness, output=number),
            )
        if claim.get("dtype") != dtype:
            raise Stop(Verdict.WRONG, f"{which}is {str(claim.get('dtype'))[:20]} where {dtype} is right", replace(witness, output=number))


def raise_error(error: Any, *, listed: bool, where: str) -> None:
    """Turns what a launcher raised into the trial's end, or into `Unsupported` on a shape that it need not support."""
    if not isinstance(error, dict):
        raise Stop(Verdict.REFUSED, "its process sent what no worker sends")
    kinds = {kind for kind in error.get("kinds") or () if isinstance(kind, str)}
    message = in_words(error)
    if "InterpreterUnsupported" in kinds:
        raise Stop(Verdict.NOT_JUDGED, f"the interpreter can't run it: {str(error.get('message'))[:200]}")
    if "OutOfBoundsError" in kinds:
        raise Stop(Verdict.WRONG, f"{str(error.get('message'))[:240]}", Witness(0, where, pattern="outside of a tensor"))
    if kinds & _BUILD_ERRORS:
        raise Stop(Verdict.DOES_NOT_BUILD, message)
    if not listed and kinds & _UNSUPPORTED:
        raise Unsupported(message)
    raise Stop(Verdict.CRASHED, f"{message} on {where}")


def in_words(error: Mapping[str, Any]) -> str:
    """``ValueError: bad shape (line 12: `return f(x)`)``."""
    first = (str(error.get("message") or "").strip().splitlines() or [""])[0][:240]
    text = f"{str(error.get('type'))[:60]}: {first}" if first else str(error.get("type"))[:60]
    if isinstance(error.get("line"), int):
        text += f" (line {error['line']}: `{str(error.get('text') or '')[:100]}`)"
    return text


def _wrong(found: Comparison, number: int, count: int, kind: InputSet) -> str:
    which = f"output {number}: " if count > 1 else ""
    where = f" ({found.pattern})" if found.pattern and found.pattern not in found.reason else ""
    return f"{which}{found.reason}{where} on {kind.name}"


def _fill(witness: Witness, found: Comparison, number: int) -> Witness:
    return replace(
        witness, output=number, index=found.index, got=_plain(found.got), expected=_plain(found.expected), bound=_plain(found.bound),
        pattern=found.pattern,
    )  # fmt: skip


def _plain(value: float | None) -> float | None:
    return value if value is None or not math.isnan(value) else math.nan


def _shape(shape: Any) -> str:
    return "×".join(str(size)[:12] for size in shape) if isinstance(shape, (list, tuple)) and shape else "()"
