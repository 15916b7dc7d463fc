"""Inspections to look at, made of the real records: for a kernel that reduces rows, and a reference of five ops."""

from __future__ import annotations

from typing import Any

from workbench.explain.inspection import (
    AccessRow,
    CompiledLaunch,
    CompilerReport,
    Footprint,
    KernelRow,
    LaunchMemory,
    MemoryReport,
    ProgramMap,
    Slice,
    Stage,
    TensorMap,
    Timeline,
    TraceReport,
)
from workbench.records import encode


def sample_reports(source: str) -> dict[str, dict[str, Any]]:
    """One of each kind, as JSON data. `source` is the variant's; its lines are linked with the stages'."""
    return {"compiler": encode(compiler(source)), "memory": encode(memory()), "trace": encode(trace())}


def compiler(source: str) -> CompilerReport:
    """Stages with a few lines for each line of the kernel."""
    first = next(number for number, line in enumerate(source.split("\n"), 1) if line.startswith("@triton.jit"))
    body = range(first + 2, min(first + 12, source.count("\n")))

    def stage(name: str, line: str, each: int) -> Stage:
        texts, pairs = [f"// {name} of rmsnorm_kernel"], []
        for number in body:
            pairs.append((len(texts) + 1, number))
            texts += [line.format(n=len(texts) + index) for index in range(each)]
        pairs.append((len(texts) + 1, 0))
        texts.append("}" if "tt" in name else "// end")
        return Stage(name, "\n".join(texts), tuple(pairs))

    stages = (
        stage("ttir", "    %{n} = tt.load %ptr, %mask : tensor<8192x!tt.ptr<bf16>>", 2),
        stage("ttgir", "    %{n} = tt.load %ptr, %mask : tensor<8192x!tt.ptr<bf16>, #blocked>", 3),
        stage("llir", '  %{n} = call i32 asm sideeffect "mov.u32 $0, %laneid;", "=r"()', 5),
        stage("ptx", "\t@%p1 ld.global.L1::evict_first.v4.b32 {{ %r{n}, %r2, %r3, %r4 }}, [ %rd1 + 0 ];", 6),
        Stage("sass", "", note="there is no disassembler here: install the package nvidia-cuda-nvcc for SASS"),
    )
    launch = CompiledLaunch(
        kernel="rmsnorm_kernel", grid=(4096, 1, 1), arguments={"x_ptr": "*bf16:16", "stride": "i32:16", "eps": "fp32"},
        constexprs={"BLOCK": 8192}, options={"num_warps": 8, "num_stages": 3}, warps=8, registers=96, spill_bytes=0, shared_bytes=1024,
        occupancy=0.625, limited_by="registers", blocks=5, waves=6.2, vectors=((16, 8), (4, 2)), build_ms=214.0, stages=stages,
        instructions=(("float", 212), ("integer", 91), ("load global", 10), ("store global", 4), ("shared", 6), ("barrier", 2)),
    )  # fmt: skip
    return CompilerReport("cuda:90", "NVIDIA H200", ("cuda:90", "cuda:80", "hip:gfx942"), source, (launch,))


def memory() -> MemoryReport:
    """Programs of two rows each; the weight is read by all of them."""
    rows, columns, size = 33, 33, 33 * 33
    x = TensorMap("x_ptr", (33, 130), "bfloat16", (130, 1), rows, columns, 1, 4, 1, ((2.0, size),), ((0.0, size),), 1.0, 2, 0)
    y = TensorMap("y_ptr", (33, 130), "bfloat16", (130, 1), rows, columns, 1, 4, 1, ((0.0, size),), ((1.0, size),), 1.0, 0, 1)
    w = TensorMap(
        "w_ptr", (130,), "bfloat16", (1,), 1, columns, 1, 4, 1, tuple((17.0 + n % 3, 1) for n in range(33)), ((0.0, 33),), 1.0, 20, 0
    )
    programs = tuple(
        ProgramMap((number, 0, 0), number, (
            Footprint("x_ptr", ((number * 2 * columns, min(size, (number * 2 + 2) * columns)),), ()),
            Footprint("y_ptr", (), ((number * 2 * columns, min(size, (number * 2 + 2) * columns)),)),
            Footprint("w_ptr", ((0, columns),), ()),
        ))
        for number in range(17)
    )  # fmt: skip
    accesses = (
        AccessRow(20, "    x = tl.load(x_ptr + cols, mask=mask, other=0.0)", "load", "x_ptr", 2, 34, 17160, 8580, 272, 2.1, 2.0, 0.02),
        AccessRow(22, "    w = tl.load(w_ptr + cols * 8, mask=mask)", "load", "w_ptr", 2, 17, 4420, 260, 136, 16.0, 2.0, 0.49),
        AccessRow(23, "    tl.store(y_ptr + cols, y, mask=mask)", "store", "y_ptr", 2, 17, 8580, 8580, 136, 2.0, 2.0, 0.02),
    )
    launch = LaunchMemory("rmsnorm_kernel", (17, 1, 1), 17, 17, tensors=(x, w, y), sampled=programs, accesses=accesses)
    return MemoryReport(
        "small", ("x 33×130 bfloat16", "weight 130 bfloat16"), (launch,), ("Shapes are cut down so that every program can be run.",)
    )


def measured_trace() -> TraceReport:
    """A variant of two kernels, measured on a GPU."""
    slices = (Slice("rmsnorm_partial", 0.0, 40.1, "7", True), Slice("rmsnorm_apply", 43.0, 9.8, "7", True))
    rows = (KernelRow("rmsnorm_partial", 1, 40.1, 0.8, True), KernelRow("rmsnorm_apply", 1, 9.8, 0.2, True))
    variant = Timeline("variant", "measured", 52.8, slices, rows)
    return TraceReport(True, (variant, Timeline("reference", "measured", 158.0, (Slice("mul", 0.0, 158.0, "7"),))))


def counters(*kernels: str) -> TraceReport:
    """A table of such kernels, made as the inspector makes it: the longest first, each half as long as the one before."""
    from workbench.judge.inspection import counters

    names = counters.names(9)
    plain = {name: 0.4 * place if "stalled" in name else 88.0 - 7 * place for place, name in enumerate(names)}
    launches = []
    for place, kernel in enumerate(kernels):
        share = 0.5**place
        figures = {
            **plain, "gpu__time_duration.sum": 41.3 * share, names[11]: 4.0,
            "dram__bytes_read.sum": 67.4e6 * share, "dram__bytes_write.sum": 66.9e6 * share,
            "launch__registers_per_thread": 32.0 + 8 * place, "launch__shared_mem_per_block": 1024.0 + 16 * place,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 1536.0 * place,
        }  # fmt: skip
        if place:
            del figures["lts__t_sector_hit_rate.pct"]
        launches.append(counters.Launch(kernel, figures))
    note = "one warm call, each launch run again for every few counters, with cold caches and the card's own clocks"
    return TraceReport(True, (), metrics=counters.metrics(launches, 9, 134.2e6), metrics_note=note)


def trace() -> TraceReport:
    """A modelled variant of two launches, and the reference on the host."""
    parts = {"memory": 29.4, "L2": 17.0, "compute": 4.2, "launch": 2.0}
    variant = Timeline("variant", "modelled", 40.2, (
        Slice("rmsnorm_partial", 0.0, 31.0, "launches", True, parts, {"DRAM bytes": 134e6}),
        Slice("rmsnorm_apply", 31.0, 9.2, "launches", True, {"memory": 6.1, "compute": 0.9, "launch": 2.0}),
    ), (KernelRow("rmsnorm_partial", 1, 31.0, 0.77, True, 134e6), KernelRow("rmsnorm_apply", 1, 9.2, 0.23, True, 16e6)))  # fmt: skip
    ops = ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul", "aten::mul")
    slices, at = [], 0.0
    for index in range(120):
        us = 40.0 + 300.0 * (index % 6 == 0) + 3.0 * (index % 7)
        slices.append(Slice(ops[index % 6], at, us, "thread 1"))
        at += us + 4.0
    totals = {name: [one.us for one in slices if one.name == name] for name in dict.fromkeys(ops)}
    kernels = tuple(KernelRow(name, len(found), sum(found), sum(found) / at) for name, found in totals.items())
    reference = Timeline("reference", "host", at, tuple(slices), kernels)
    return TraceReport(
        False, (variant, reference), metrics_note="Hardware counters need a GPU: there is none on this machine.",
        notes=("There is no GPU here, so the variant's timeline is modelled.",),
    )  # fmt: skip
