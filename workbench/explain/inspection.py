"""What a person can look at in one variant: the data behind the Compiler, Memory and Trace tabs.

`Evolution.inspect(evaluation, what, **options)` gives one of these records as JSON data (`records.encode`), or ``{"error": LINE}`` where
LINE is one sentence with the mend. Candidate code is hostile: every text here (kernel names, stages, source lines) is to be shown as text.

    what         record            options
    "compiler"   `CompilerReport`  target: "cuda:90" (the Task's by default), "cuda:80", "hip:gfx942" …
    "memory"     `MemoryReport`    shapes: "small" (default) or "real"
    "trace"      `TraceReport`     counters: true reads hardware counters, and nothing else; takes a GPU and ncu

Lines are counted from 1, in the candidate's own source as it stands in the `Candidate`. Times are µs, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

What = Literal["compiler", "memory", "trace"]

WHATS: tuple[What, ...] = ("compiler", "memory", "trace")

Runs = tuple[tuple[float, int], ...]
"""A run-length list: value and how often it repeats."""


@dataclass(frozen=True)
class Stage:
    """One stage of the compiler, as text.

    Attributes:
        name: ``ttir``, ``ttgir``, ``llir``, ``ptx``, ``sass``, ``amdgcn``, or ``cuda`` for a CUDA C++ source.
        text: without debug markers; cut at a megabyte, then `cut` is true.
        lines: (line of the text, line of the candidate) pairs in rising order. Each holds from its line on to the next pair; 0 means
            that the text from there on comes from no line. Empty where the compiler kept no line information.
        note: why the stage is missing or has no lines, in one line with the mend; empty otherwise. A stage with a note may have no text.
    """

    name: str
    text: str
    lines: tuple[tuple[int, int], ...] = ()
    cut: bool = False
    note: str = ""


@dataclass(frozen=True)
class CompiledLaunch:
    """One kernel as one call of the variant launches it at the real shapes, compiled for the target.

    Attributes:
        kernel: its name; `grid`: programs on three axes; `count`: launches of it in one call. A CUDA C++ kernel has no grid: ``()``.
        arguments: the compiler's type of each parameter, ``:16`` where divisible by 16, ``=1`` where it is the constant 1.
        constexprs: values of its constants; `options`: num_warps, num_stages, num_ctas.
        registers: per thread; `spill_bytes`: per thread; `shared_bytes`: per program.
        occupancy: share of a multiprocessor's warps that can be resident; `limited_by`: registers, shared memory, warps or blocks.
        blocks: programs resident on one multiprocessor; `waves`: rounds in which the grid is worked off.
        tensor_cores: whether there are matrix instructions; `dots`: each product as text, such as ``64x64x32 float16``.
        vectors: (bytes that one thread moves in an access, how many such accesses to global memory the code has).
        instructions: (class, count) of the machine code, most first: ``load global``, ``store global``, ``shared``, ``matrix``, ``float``,
            ``integer``, ``control``, ``barrier``, ``other``. Empty where there is no disassembly.
        stages: in the compiler's order.
    """

    kernel: str
    grid: tuple[int, ...]
    count: int = 1
    arguments: Mapping[str, str] = field(default_factory=dict)
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 0
    registers: int = 0
    spill_bytes: int = 0
    shared_bytes: int = 0
    occupancy: float = 0.0
    limited_by: str = ""
    blocks: int = 0
    waves: float = 0.0
    tensor_cores: bool = False
    dots: tuple[str, ...] = ()
    vectors: tuple[tuple[int, int], ...] = ()
    instructions: tuple[tuple[str, int], ...] = ()
    build_ms: float = 0.0
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class CompilerReport:
    """What the compiler made of a variant.

    Attributes:
        target: what it was compiled for; `gpu` is the name of that card.
        targets: what may be asked for, for a choice.
        source: the text that line numbers count in.
        launches: in the order of their first appearance.
        library: calls into a library, as text, such as ``aten::mm ×2``: there is nothing to disassemble.
        notes: sentences for people.
    """

    target: str
    gpu: str
    targets: tuple[str, ...]
    source: str
    launches: tuple[CompiledLaunch, ...] = ()
    library: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    what: str = "compiler"


@dataclass(frozen=True)
class TensorMap:
    """How often the elements of one tensor argument are read and written by the programs that were counted.

    The tensor's last two logical dimensions are drawn as a grid of cells, `row_elements` by `column_elements` elements each; all other
    dimensions are folded into the rows' mean (`folded` elements lie behind each place). A vector has one row.

    Attributes:
        name: of the kernel's parameter; `shape`, `dtype`, `strides`: of the tensor.
        rows, columns: of the grid, at most 128 each.
        reads, writes: the mean number of times that each element of a cell is read and written, row by row, run-length coded.
        touched: share of the tensor's elements that are read or written at all.
        most_reads, most_writes: of any single element.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    rows: int
    columns: int
    row_elements: int
    column_elements: int
    folded: int
    reads: Runs
    writes: Runs
    touched: float
    most_reads: int
    most_writes: int


@dataclass(frozen=True)
class Footprint:
    """The cells that one program touches in one tensor: half-open ranges of cell numbers (row times columns plus column)."""

    tensor: str
    reads: tuple[tuple[int, int], ...] = ()
    writes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ProgramMap:
    """One sampled program: its place in the grid, its number (first axis fastest), and its footprint in each tensor that it touches."""

    program: tuple[int, int, int]
    number: int
    footprints: tuple[Footprint, ...] = ()


@dataclass(frozen=True)
class AccessRow:
    """One memory instruction of the source, over all programs that were counted.

    A request is 32 neighbouring lanes with one element each, ordered along the axis where addresses are closest, as the compiler orders
    them. The hardware moves sectors of 32 bytes.

    Attributes:
        line: in the candidate; 0 where unknown. `text`: that line.
        op: ``load``, ``store`` or ``atomic``.
        tensor: name of the kernel's parameter; "?" where the pointer's origin got lost.
        calls: how often the instruction ran, once a program and round of a loop.
        bytes_requested: of unmasked lanes; `bytes_unique`: distinct ones of these over all counted programs.
        sectors_per_request, ideal_sectors_per_request: moved, and enough for the distinct bytes if they lay side by side.
        masked: share of lanes that the mask turns off.
    """

    line: int
    text: str
    op: str
    tensor: str
    itemsize: int
    calls: int
    bytes_requested: int
    bytes_unique: int
    requests: int
    sectors_per_request: float
    ideal_sectors_per_request: float
    masked: float


@dataclass(frozen=True)
class LaunchMemory:
    """One launch: `counted` of its `programs` were interpreted. Where that is not all, counts are of these programs alone."""

    kernel: str
    grid: tuple[int, ...]
    programs: int
    counted: int
    count: int = 1
    tensors: tuple[TensorMap, ...] = ()
    sampled: tuple[ProgramMap, ...] = ()
    accesses: tuple[AccessRow, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class MemoryReport:
    """Which program touches which addresses, from the interpreter.

    Attributes:
        shapes: ``small`` (shrunken, every program) or ``real`` (the real shapes, a few programs of each launch).
        inputs: the shapes that ran, as text, such as ``x 33×130 float32``.
        notes: sentences for people.
    """

    shapes: str
    inputs: tuple[str, ...]
    launches: tuple[LaunchMemory, ...] = ()
    notes: tuple[str, ...] = ()
    what: str = "memory"


TimeKind = Literal["measured", "modelled", "host"]


@dataclass(frozen=True)
class Slice:
    """A stretch of time. `track` is a stream, a thread or, where modelled, the launches.

    `parts` are the modelled costs in µs by name, `figures` what they come from (``DRAM bytes``, ``FLOPs``); both empty where measured.
    """

    name: str
    start_us: float
    us: float
    track: str
    own: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelRow:
    """All calls of one kernel or op. `bytes` is None where unknown; `own`: a kernel that the variant defines."""

    name: str
    calls: int
    total_us: float
    share: float
    own: bool = False
    bytes: float | None = None


@dataclass(frozen=True)
class Timeline:
    """One call of the variant or of the reference.

    Attributes:
        name: ``variant`` or ``reference``.
        kind: ``measured`` on the GPU, ``modelled``, or ``host``: this machine's own time of the PyTorch ops, comparable with nothing else.
        total_us: from the first slice's start to the last one's end.
        slices: at most 5,000 in order of their start; `left_out` are missing.
        kernels: longest first.
        note: why there is nothing, with the mend.
    """

    name: str
    kind: TimeKind
    total_us: float = 0.0
    slices: tuple[Slice, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class Metric:
    """A hardware counter of all launches of one kernel in a call; of the whole call where `kernel` is empty.

    `unit` is ``µs``, ``B``, ``%``, ``×``, a noun, or empty for a count. `meaning` is a short sentence or two.
    """

    kernel: str
    name: str
    value: float
    unit: str
    meaning: str = ""


@dataclass(frozen=True)
class TraceReport:
    """Where the time goes, variant beside reference on the same inputs.

    Attributes:
        measured: whether the variant's timeline comes from a GPU.
        timelines: the variant's first, then the reference's. Without a GPU there are three: both modelled, which compare with each other,
            and the reference's host times, which compare with nothing.
        file: full Chrome trace (``.json.gz``), a path on the machine of the run; empty where there is none.
        metrics: hardware counters, where they were asked for (then there are no timelines), the longest kernel's first; `metrics_note`
            says how they were read, or what is in the way of reading them, with the mend.
        notes: sentences for people.
    """

    measured: bool
    timelines: tuple[Timeline, ...]
    file: str = ""
    metrics: tuple[Metric, ...] = ()
    metrics_note: str = ""
    notes: tuple[str, ...] = ()
    what: str = "trace"
