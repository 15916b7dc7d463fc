"""What to compute: the reference, its inputs, the precision it must keep, and the least work it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.graph import Graph
from workbench.records import digest

Role = Literal["input", "parameter", "buffer"]
Precision = Literal["match", "tf32", "half"]
State = Literal["kept", "free"]
ValueKind = Literal[
    "normal", "uniform", "positive", "probabilities", "integers", "permutation", "mask", "one_hot", "triangular", "scalar", "bytes"
]

ITEM_BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
"""Bytes of one element of every dtype that a Task may hold; other dtypes are refused at capture."""


@dataclass(frozen=True)
class Values:
    """How an input's values are drawn. `inputs.make_inputs` is the one generator.

    Kinds and their `args`: normal(mean, std), uniform(lo, hi), positive(scale), probabilities(dim), integers(lo, hi; hi is
    excluded), permutation(), mask(p), one_hot(dim), triangular(lower: 1 or 0, mean, std), scalar() with the Python value in
    `value`, bytes() where no other kind describes it: `value` is the content in base64, the same for every seed.
    """

    kind: ValueKind
    args: Mapping[str, float] = field(default_factory=dict)
    value: Any = None


@dataclass(frozen=True)
class InputSpec:
    """One argument of the reference. Python scalars have dtype ``"python"``, shape ``()`` and values of kind scalar."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    values: Values
    role: Role = "input"

    @property
    def is_tensor(self) -> bool:
        return self.dtype != "python"

    @property
    def nbytes(self) -> int:
        """Bytes that one read of the tensor moves: expanded (stride 0) dimensions count once."""
        if not self.is_tensor:
            return 0
        sizes = (size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0 or size == 0)
        return math.prod(sizes) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class OutputSpec:
    """One tensor that the reference returns, in the order in which a flattened tuple, list or dict gives them."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Work:
    """The least work that any implementation must do: each input read once, each output written once.

    Attributes:
        bytes: minimal traffic with device memory.
        flops: floating-point operations; a fused multiply-add counts as two.
        matmul_flops: those of `flops` that tensor cores can do.
        matmul_dtype: operand dtype of the matrix products; empty where there are none.
    """

    bytes: int
    flops: int
    matmul_flops: int = 0
    matmul_dtype: str = ""


@dataclass(frozen=True)
class Task:
    """An op to make fast. It can be stored, sent to another machine and run there.

    Attributes:
        name: for people; also the default name of the accepted function.
        reference: one self-contained module text that runs in an empty namespace.
        entry: the function to call, or ``"Model"`` where `format` is ``"model"`` (KernelBench's format).
        inputs: arguments in order. For a model: those of ``forward``; its parameters are its own.
        outputs: what the reference returned at capture.
        graph: its ATen graph at the captured shapes; empty where it can't be traced.
        init_args: for a model: what ``get_init_inputs()`` returned.
        shapes: further shapes that matter, one tuple of input shapes each.
        matmul_precision: ``torch.get_float32_matmul_precision()`` at capture.
        convolution_tf32: it convolves in float32, and ``torch.backends.cudnn.allow_tf32`` was set at capture, as it is by default.
        target: such as ``cuda:90`` or ``hip:gfx942``.
    """

    name: str
    reference: str
    entry: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    work: Work
    format: Literal["function", "model"] = "function"
    graph: Graph = Graph()
    init_args: tuple[Any, ...] = ()
    shapes: tuple[tuple[tuple[int, ...], ...], ...] = ()
    precision: Precision = "match"
    matmul_precision: str = "highest"
    convolution_tf32: bool = False
    differentiable: bool = False
    target: str = "cuda:90"
    changes: tuple[str, ...] = ()
    """Arguments that the op writes to. What they hold afterwards counts as further outputs, in this order."""
    random: str = ""
    """The op that draws random numbers, if one does: such a Task is judged by distribution."""
    state: State = "kept"
    """For a model: whether a candidate that has the buffers which the model's call updates must update them too, or only gets a label."""
    unreached: tuple[str, ...] = ()
    """Buffers that the captured module updates, and that no argument gives: neither reference nor candidate can update them."""

    @property
    def changed_positions(self) -> tuple[int, ...]:
        """Where the arguments stand that the op writes to."""
        names = [spec.name for spec in self.inputs]
        return tuple(names.index(name) for name in self.changes)

    @property
    def tf32(self) -> bool:
        """Whether products in float32 may be computed in TF32: the policy says so, or the reference's own may be."""
        own = (self.matmul_precision != "highest" and self.work.matmul_flops > 0) or self.convolution_tf32
        return self.precision == "tf32" or own

    @property
    def id(self) -> str:
        """Equal for equal tasks, on every machine."""
        return digest(self)

    @property
    def candidate_entry(self) -> str:
        """The name that a candidate must define: the reference's own, or ``ModelNew`` for a model."""
        return "ModelNew" if self.format == "model" else self.entry
