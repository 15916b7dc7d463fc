"""What the compiler made of a candidate: recorded and compiled in its worker, for the Compiler tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.explain import stages
from workbench.explain.inspection import CompiledLaunch, CompilerReport, Stage
from workbench.judge.recording.launches import RecordedLaunch, Recording
from workbench.target import TARGETS, Target
from workbench.task import InputSpec

_ANSWER = 12_000_000
"""Characters that all stages together may have, so that the answer stays below the line's limit."""


class NotCompiled(Exception):
    """Why there is nothing to show, in one line."""


def compiled(
    source: str, entry: str, parameters: Mapping[str, Any], specs: Sequence[InputSpec], target: Target, *, format: str,
    init_args: Sequence[Any], directory: Path,
) -> CompilerReport:  # fmt: skip
    """Records one call at the real shapes, compiles what it launches for the target, and takes it apart.

    Raises:
        NotCompiled: it does not load, launch or build.
    """
    from workbench.judge.recording.recorder import record

    recording = record(
        source, entry, parameters, specs, target, format=format, init_args=init_args, directory=directory, artifacts=True
    )  # fmt: skip
    return report(recording, source, target, parameters)


def report(recording: Recording, source: str, target: Target, parameters: Mapping[str, Any]) -> CompilerReport:
    """The report of a recording that was made with artifacts."""
    if recording.error is not None:
        where = f"line {recording.error.line}: " if recording.error.line else ""
        raise NotCompiled(f"it does not build for {target.name}: {where}{recording.error.message}")
    notes = []
    if not recording.launches:
        notes.append("it launches no kernel of its own" + (": only a library's, which can't be taken apart" if recording.library else ""))
    return CompilerReport(
        target=target.name,
        gpu=target.gpu,
        targets=tuple(TARGETS),
        source=source,
        launches=tuple(
            _launch(launch, target, _ANSWER // (6 * len(recording.launches)), source, parameters) for launch in recording.launches
        ),
        library=tuple(f"aten::{call.op}" + (f" ×{call.count}" if call.count > 1 else "") for call in recording.library),
        notes=tuple(notes),
    )


def _launch(launch: RecordedLaunch, target: Target, limit: int, source: str, parameters: Mapping[str, Any]) -> CompiledLaunch:
    texts = dict(launch.artifacts)
    binary = bytes.fromhex(texts.pop("binary", "")) if target.backend == "cuda" else b""
    limit = min(limit, stages.LIMIT)
    made = (_cuda_stages(launch.kernel, source, parameters, target, limit) if "cuda" in texts else ()) or stages.stages(
        texts, binary, limit=limit
    )
    resources = launch.resources
    return CompiledLaunch(
        kernel=launch.kernel,
        grid=launch.grid,
        count=launch.count,
        arguments=dict(launch.arguments),
        constexprs=dict(launch.constexprs),
        options=dict(launch.options),
        warps=resources.warps,
        registers=resources.registers,
        spill_bytes=resources.spill_bytes,
        shared_bytes=resources.shared_bytes,
        occupancy=resources.occupancy,
        limited_by=resources.limited_by,
        blocks=launch.blocks,
        waves=resources.waves,
        tensor_cores=resources.tensor_cores,
        dots=tuple(" ".join(filter(None, ("×".join(map(str, dot.shape)), dot.precision))) for dot in launch.dots),
        vectors=tuple((int(size), count) for size, count in launch.vectors.items()),
        instructions=stages.instructions(made[-1]) if made else (),
        build_ms=launch.build_ms,
        stages=made,
    )


def _cuda_stages(kernel: str, source: str, parameters: Mapping[str, Any], target: Target, limit: int) -> tuple[Stage, ...]:
    """Of CUDA C++, built once more with line information, which changes no instruction; nothing where that can't be."""
    from workbench.build import cuda, nvrtc
    from workbench.build.cuda_source import read_cuda

    try:
        found = read_cuda(source, parameters)
        macros = [f"-D{name}={value}" for name, value in found.macros.items()]
        module = cuda.build(found.text, found.kernels, target, [*macros, "--generate-line-info"], place=found)
    except (ValueError, cuda.CudaBuildError, nvrtc.NvrtcMissingError):
        return ()
    symbol = next((built.symbol for built in module.kernels if built.name == kernel), "")
    return stages.stages(
        {"cuda": found.text, "ptx": module.ptx}, module.cubin, limit=limit, file=nvrtc.FILE, symbol=symbol, line_of=found.module_line
    )
