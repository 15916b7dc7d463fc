"""Run in a process with TRITON_INTERPRET=1: interprets each family at its small shapes and prints its error over torch's as JSON lines."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from triton_families import FAMILIES, specs

from workbench.build.tune import load_candidate
from workbench.inputs import make_inputs
from workbench.judge.emulation.interpreter import mend

EPS = {"float32": 1.2e-7, "bfloat16": 7.8e-3, "float16": 9.8e-4}


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    mend()
    directory = Path(tempfile.mkdtemp())
    for name in names or list(FAMILIES):
        family = FAMILIES[name]
        for dtype in family.dtypes:
            inputs = make_inputs(specs(family, dtype, family.small), 0)
            before = [tensor.clone() for tensor in inputs]
            started = time.perf_counter()
            try:
                launcher = load_candidate(family.source, family.entry, family.parameters, directory=directory, name=f"{name}_{dtype}")
                got = launcher(*inputs)
                seconds = time.perf_counter() - started
                expected = family.reference(*inputs)
                got, expected = (value if isinstance(value, tuple) else (value,) for value in (got, expected))
                worst = 0.0
                for g, e in zip(got, expected, strict=True):
                    assert g.shape == e.shape, (g.shape, e.shape)
                    if e.dtype.is_floating_point:
                        scale = EPS[dtype] * (e.abs() + e.abs().mean())
                        worst = max(worst, float(((g.double() - e).abs() / scale).max()))
                    else:
                        worst = max(worst, float((g != e).any()) * 1e9)
                unchanged = all(torch.equal(a, b) for a, b in zip(before, inputs, strict=True))
                line = {"error_in_eps": worst, "seconds": seconds, "inputs_unchanged": unchanged}
            except Exception as error:
                line = {"raised": f"{type(error).__name__}: {error}"}
            print(json.dumps({"family": name, "dtype": dtype, **line}), flush=True)


main(sys.argv[1:])
