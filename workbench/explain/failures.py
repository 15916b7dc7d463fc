"""What went wrong with a candidate that can't be used, and the smallest change that may mend it."""

from __future__ import annotations

import re

from workbench.candidate import Evaluation, Witness
from workbench.explain import cuda_wording
from workbench.task import Task

Finding = tuple[str, str, str, tuple[str, ...]]
"""Kind, summary, directive, evidence."""

_BUILD = (
    (
        r"out of resources.*shared memory",
        "It asks for more shared memory than a program can have.",
        "Halve the largest block size, or take one off num_stages: each stage holds a copy of the tiles.",
    ),
    (
        r"does not fit on a multiprocessor",
        "One program needs more registers or warps than a multiprocessor has.",
        "Halve the block size or num_warps.",
    ),
    (
        r"power of (2|two)",
        "A block's size is not a power of two.",
        "Make every size in tl.arange (its end minus its start: begin at 0), tl.zeros and tl.full a power of two (triton.next_power_of_2), "
        "and mask what lies beyond the edge.",
    ),
    (
        r"arange'?s arguments must be|must be a? ?(tl\.)?constexpr|constexpr",
        "A block's size is not known when the kernel is compiled.",
        "Give the size to the kernel as a parameter annotated tl.constexpr.",
    ),
    (
        r"[Cc]annot access global variable",
        "A kernel reads a global that is no constant.",
        "Pass the value as a tl.constexpr parameter, or define the global as tl.constexpr(…).",
    ),
    (
        r"module 'triton[\w.]*' has no attribute '?\"?(\w+)",
        "It calls a function that Triton does not have.",
        "Replace the function by one of triton.language, triton.language.extra.libdevice, or by arithmetic on those.",
    ),
    (
        r"name '(\w+)' is not defined|(\w+) is not defined",
        "It uses a name that is not defined.",
        "Define or import the name; kernels see their parameters, module-level tl.constexpr and other @triton.jit functions only.",
    ),
    (
        r"K >= \d+|at least 16|M >= \d+|min_dot_size|Input shapes should have",
        "An operand of tl.dot is smaller than the tensor cores take.",
        "Make M, N and K of every tl.dot at least 16, or write the product as tl.sum(a[:, :, None] * b[None, :, :], 1).",
    ),
    (
        r"equal ranks|Both inputs must be|rank",
        "An operation gets blocks of different or wrong rank.",
        "Bring the operands to the same rank with [:, None] and [None, :].",
    ),
    (
        r"incompatible dimensions|make_shape_compatible|shape mismatch|Cannot broadcast",
        "Two blocks have shapes that do not broadcast.",
        "Give both operands the same block shape, or size 1 where one is to be repeated.",
    ),
    (
        r"[Tt]ype mismatch|same dtype|but is re-?assigned|[Ll]oop-carried|initial value",
        "A variable changes its type or shape, in a loop or between branches.",
        "Initialise the variable before the loop with the dtype and shape that it has after it (tl.zeros(…, tl.float32)).",
    ),
    (
        r"line \d+: |invalid syntax|SyntaxError|never closed|unexpected indent",
        "The module is not valid Python.",
        "Return the whole module as plain Python, without prose around it.",
    ),
    (
        r"defines no",
        "The module lacks the function that it must define.",
        "Define the launcher under the reference's own name, with its parameters in order.",
    ),
)


def build(evaluation: Evaluation, task: Task) -> Finding:
    """The module or one of its kernels does not build."""
    text = f"{evaluation.reason}\n{evaluation.log}"
    where = _line(evaluation)
    for pattern, summary, directive in cuda_wording.BUILD if cuda_wording.is_cuda(evaluation) else _BUILD:
        if re.search(pattern, evaluation.reason) or re.search(pattern, text[:4000]):
            return "build", summary, f"{where}{directive}", _reason(evaluation)
    return "build", "It does not build.", f"{where}Mend what the compiler says and change nothing else: {_short(evaluation.reason)}", ()


def launch(evaluation: Evaluation, task: Task) -> Finding:
    """The launcher raised, or its process died."""
    reason = cuda_wording.misfit(evaluation) or evaluation.reason
    where = _line(evaluation)
    table = (
        (r"illegal (memory )?access|misaligned address|SIGSEGV|signal 11|died", "A kernel touches memory outside of its tensors.",
         "Mask every load and store with the tensor's real extent, and compute offsets in 64 bits where they may exceed 2^31."),
        (r"unexpected keyword|missing \d+ required|takes \d+ positional|unrecognised", "Arguments and parameters do not match.",
         "Make the call agree with the signature: every parameter once, and options (num_warps, num_stages) by keyword."),
        (r"IndexError|[Dd]imension out of range", "It asks for a dimension that its tensor does not have.",
         "Count the tensor's dimensions, and ask for no others: shape, stride and index."),
        (r"no attribute", "It uses something that an object does not have.", "Replace the attribute by one that exists."),
        (r"out of memory", "It allocates more memory than there is.", "Reuse the output as workspace, or work in pieces."),
        (r"[Ee]xpected .* device|same device|cpu tensor", "A tensor lies on the wrong device.", "Allocate everything with "
                                                                                                "device=x.device."),
    )  # fmt: skip
    for pattern, summary, directive in (*(cuda_wording.LAUNCH if cuda_wording.is_cuda(evaluation) else ()), *table):
        if re.search(pattern, reason):
            return "launch", summary, f"{where}{directive}", _reason(evaluation)
    return "launch", "The launcher raised, or its process died.", f"{where}Mend this and change nothing else: {_short(reason)}", ()


def timeout(evaluation: Evaluation, task: Task) -> Finding:
    """It did not come to an end."""
    return (
        "timeout",
        "It did not end within the time that is given.",
        "Look for a loop that never ends (a while without progress, a lock that nobody frees) or for a grid far larger than the output; "
        "bound every loop by a size.",
        _reason(evaluation),
    )


_STABLE = "Subtract the row's maximum before exponentials, give masked loads other=-inf for maxima, and accumulate in float32."
_NEUTRAL = "give masked loads an other= that is neutral for the reduction: 0 for sums, -inf for maxima"


def mismatch(evaluation: Evaluation, task: Task) -> Finding:
    """An element, shape or dtype differs; the pattern of the mismatches tells which mistake it is."""
    witness = evaluation.witness
    pattern = witness.pattern if witness is not None else ""
    text = f"{evaluation.reason} {pattern}"
    evidence = (*_seen(witness), *((f"{evaluation.matched:.1%} of the elements match",) if evaluation.matched is not None else ()))
    if "NaN" in pattern and witness is not None and "values ×" in witness.input_set:
        return "mismatch", "Large inputs overflow.", _STABLE, evidence
    reduced = any(op in task.graph.ops() for op in ("sum", "mean", "softmax", "_softmax", "amax", "logsumexp", "var", "norm", "cumsum"))
    table = (
        (r"past the end|before the start|outside of a tensor|written outside|missing mask", "A kernel leaves a tensor.",
         "Add the mask that is missing: each axis of a load or store needs offsets < its real extent."),
        (r"input changed|changes (its )?input", "It changes one of its inputs.",
         "Write to a tensor of its own (torch.empty_like) and never store through an input's pointer."),
        (r"has shape", "An output has the wrong shape.", "Allocate the output with the reference's shape; check keepdim and the "
                                                         "order of axes."),
        (r" is (torch\.)?\w+ where \w+ is right|dtype", "An output has the wrong dtype.",
         "Allocate the output with the reference's dtype; compute in float32 and convert once, when storing."),
        (r"alias|same memory|earlier", "Its outputs share memory between calls.", "Allocate the output anew in every call."),
        (r"(never written|NaN \().*(only the last|the last \d|tail)", "The end of an axis is not written, or not read.",
         "Compare masks with the real size (offsets < size, not size - 1), and round the number of programs or iterations up "
         "(triton.cdiv)."),
        (r"never written|NaN \(", "Part of the output is never written, or comes from beside a tensor.",
         "Make the grid cover the whole output: triton.cdiv(size, BLOCK) programs on each axis, and give masked loads other=."),
        (r"tail|tile that is not covered|the last ", "The end of an axis is wrong: the partial tile.",
         "Cover the last, partial tile: round the number of programs or iterations up (triton.cdiv), mask it, and give masked loads "
         "an other= "
         + ("that is neutral for the reduction (0 for sums, -inf for maxima)." if reduced else "value.")),
        (r"systematic error", "Every element leans to the same side: something is rounded too early.",
         "Keep sums and intermediate results in float32, and convert once, when storing."),
        (r"scaled by [\d.e+-]+, scattered", "Rows are scaled, each by its own factor.",
         f"Check what masked lanes add to the row's sum or maximum ({_NEUTRAL}), and that each element is counted once." if reduced else
         "Check the factor that rows are scaled with: it must come from the same row, and from all of it."),
        (r"scaled by|scaled", "The result is off by a constant factor.",
         "Check the divisor and the constants: divide by the real size, not by the block size, and count each element once."),
        (r"shifted by", "The result is off by a constant.", "Check what masked lanes contribute to a sum, and added constants such "
                                                            "as eps or a bias."),
        (r"zeros|one constant", "The output is constant where it should not be.",
         "Check that the result is stored under the mask that it was computed with, to the right pointer, and after the loop."),
        (r"NaN or infinity", "NaN or infinity appears where the truth is finite.",
         _STABLE),
        (r"every \d+th|only index|only the|the first |\d+ to \d+ of", "Only part of an axis is wrong.",
         "Recompute the offsets of this axis by hand for the index of the witness: a stride, a program id or a loop's start is off."),
        (r"one element", "A single element is wrong.",
         "Look at the edge case of the witness: a tie, the first or last element, or a store that two programs both do."),
        (r"scattered", "Scattered elements are wrong.",
         "Accumulate in float32, look for a race (two programs that store to one place without tl.atomic_add), and check the mask's "
         "other=."),
    )  # fmt: skip
    for expression, summary, directive in table:
        if re.search(expression, text):
            return "mismatch", summary, directive, evidence
    if evaluation.matched is not None and evaluation.matched > 0.5:
        directive = (
            "Recompute the element of the witness by hand: a term is missing, counted twice, or rounded too early, so that only elements "
            "with tight bounds show it."
        )
        return "mismatch", "Some elements are off, without a pattern in their places.", directive, evidence
    return (
        "mismatch",
        "Its result differs from the reference's everywhere.",
        "Recompute one output element by hand from the reference, and compare: the formula, the order of axes, or a stride is wrong.",
        evidence,
    )


def precision(evaluation: Evaluation, task: Task) -> Finding:
    """Right, but with the round-off of a coarser type."""
    asked = {resource.dot_precision for resource in evaluation.resources}
    ratio = evaluation.error_ratio
    evidence = (*_seen(evaluation.witness), *((f"largest error {ratio:.3g} times its bound",) if ratio is not None else ()))
    if "tf32" in asked:
        directive = 'Write tl.dot(…, input_precision="ieee"), or "tf32x3" for near-float32 products on tensor cores.'
        return "precision", "Its float32 products are computed in TF32.", directive, evidence
    return (
        "precision",
        "It is right with the round-off of a coarser type than the reference's.",
        "Convert operands to float32 when they are loaded, keep sums and intermediate results in float32, and convert once, when storing.",
        evidence,
    )


def refused(evaluation: Evaluation, task: Task) -> Finding:
    """Tampering, or unsafe."""
    return (
        "refused",
        "It does something that no kernel needs.",
        "Remove what the reason names: only tensors go in and out, and nothing of torch, Python or the machine is replaced.",
        _reason(evaluation),
    )


def unknown(evaluation: Evaluation, task: Task) -> Finding:
    """It could not be judged, or its time could not be confirmed."""
    reason = _short(evaluation.reason)
    if re.search(r"interpret", evaluation.reason):
        directive = "Use plain triton.language operations in place of what can't be run here, or judge it on a GPU."
    elif re.search(r"clock|time|physics", evaluation.reason):
        directive = "Launch everything on the current stream and return finished tensors, so that its clocks agree; then judge it again."
    else:
        directive = "Nothing in the candidate says what to change: judge it again where it can be run."
    return "unknown", f"It could not be judged: {reason}" if reason else "It could not be judged.", directive, ()


def _line(evaluation: Evaluation) -> str:
    match = re.search(r"\bline (\d+)", evaluation.reason)
    return f"Line {match[1]}: " if match else ""


def _reason(evaluation: Evaluation) -> tuple[str, ...]:
    return (_short(evaluation.reason),) if evaluation.reason else ()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 240 else f"{line[:239]}…"


def _seen(witness: Witness | None) -> tuple[str, ...]:
    if witness is None or witness.got is None or witness.expected is None:
        return (witness.pattern,) if witness is not None and witness.pattern else ()
    place = ", ".join(map(str, witness.index))
    said = f"output {witness.output}[{place}] is {witness.got:.6g} where {witness.expected:.6g} is right, on {witness.input_set}"
    return (said, witness.pattern) if witness.pattern else (said,)
