"""What each label means, in one line: the board shows it beside the label, and the documentation lists it.

A label refuses nothing. It is what a person would want to know before they accept a kernel: who does the work, in which precision, and
what the code does beside computing.
"""

from __future__ import annotations

from collections.abc import Mapping

OWN_STREAMS = "uses CUDA streams"

LABELS: Mapping[str, str] = {
    # Who does the work
    "no kernel of its own": "Own kernels 0 %: it defines none, so all of the work is PyTorch's or a library's.",
    "own kernels take": "Measured: the share of the GPU's time in the candidate's kernels. The rest is PyTorch's or a library's.",
    "calls": "PyTorch's own kernel does this part.",
    "multiplies matrices by @": "PyTorch's own matrix product (cuBLAS) does this part.",
    "C++ calls ATen": "Its C++ is a way to PyTorch's own kernels.",
    "uses torch.compile": "The kernel is Inductor's, which is also one of the baselines.",
    "imports the library": "A package beside PyTorch and Triton: accepted code will need it too.",
    "falls back to PyTorch when its kernel fails": "Where its kernel raises, PyTorch answers, and nobody is told.",
    "CUDA C++": "Its kernels are CUDA C++, compiled when they are first launched.",
    "launch does not fit": "Arguments and the kernel's parameters differ in number or size, which the driver does not check.",
    "builds a C++ extension": "It compiles C++ or CUDA by PyTorch's extension builder, which takes a minute the first time.",
    # In which precision
    "converts to float16": "Some of it is computed or kept in float16.",
    "converts to bfloat16": "Some of it is computed or kept in bfloat16.",
    "converts to float8": "Some of it is computed or kept in an 8-bit float.",
    "asks for TF32": "Products of float32 are computed with 10 bits of mantissa.",
    "sets torch": "A global setting of PyTorch: it stays in force after the call, for all other code too.",
    "sets triton": "A global setting of Triton: it stays in force after the call, for all other code too.",
    # On which inputs
    "hardcoded shapes": "It asks for particular sizes; the judge tries others, too.",
    "does not support": "It raises on this shape, which the task does not list. That is allowed.",
    "parameters not redrawn": "Its parameters have other names or shapes than the reference's, so both kept their first values.",
    "output strides differ from the reference's": "The same values in another memory layout; what follows may be slower.",
    "returns the memory of an input": "The result shares memory with an input: writing to one changes the other.",
    "leaves": "The reference changes this input, the candidate does not.",
    # What it keeps and does beside computing
    "remembers things by address": "It looks things up by a tensor's address or identity, which other data may get later.",
    "uses CUDA graphs": "It records its launches once and replays them, with fixed addresses.",
    OWN_STREAMS: "It works on streams of its own, which must be joined before it returns.",
    "starts threads": "Work may go on after it has returned.",
    "pins memory in the L2 cache": "It asks for a part of the L2 for itself. The judge takes that back before each timed call.",
    "looks around with": "It inspects its caller or all objects of its process. No kernel needs that.",
    "reaches for modules through sys.modules": "It looks modules up where they can be exchanged.",
    "reads the environment": "Environment variables may change what it does.",
    "reads its command line": "It asks how its process was started.",
    "hides what it calls": "Names are put together at run time, so that a reader of the text does not see what is called.",
    "runs text that is encoded": "What really runs is not in the text that you see.",
    "uses exec": "It runs text that it makes itself, as templates do.",
    "uses eval": "It evaluates text that it makes itself.",
    "uses compile": "It compiles text that it makes itself.",
    "imports ctypes": "It calls C functions past Python, with raw addresses.",
    "imports cffi": "It calls C functions past Python, with raw addresses.",
    "imports subprocess": "It starts other programs.",
    "imports multiprocessing": "It starts processes of its own.",
    "imports inspect": "It can read its caller's source and frames.",
    "imports": "It wants the network. There is none where it is judged.",
    # Of the judging
    "times vary by more than 30 %": "Between the fast and the slow calls: look at the times before you believe their median.",
    "timed while another judge used the card": "Times may be longer than they are alone.",
    "no modelled time": "It is right, and there is no model of its time; the reason stands behind the label.",
    "modelled from a part": "Some launches could not be counted; the modelled time is of the others.",
    "kernels not described": "It runs, and its launches could not be taken apart; the reason stands behind the label.",
    "KernelGuard could not read it": "The optional scanner failed on this text.",
    "KernelGuard": "A rule of the optional scanner fits this text. Honest code trips over most of them, too.",
}  # fmt: skip
"""By the label's beginning."""


def explain(label: str) -> str:
    """The line for a label, by the longest beginning that fits; empty for one that explains itself."""
    fitting = [beginning for beginning in LABELS if label.startswith(beginning)]
    return LABELS[max(fitting, key=len)] if fitting else ""
