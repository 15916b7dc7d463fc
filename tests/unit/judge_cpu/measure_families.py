"""Run in a process with TRITON_INTERPRET=1: measures the traffic of each family at its real shapes and prints it as JSON lines."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

import torch
from triton_families import FAMILIES, specs

from workbench.build.tune import load_candidate
from workbench.judge.emulation.interpreter import mend
from workbench.judge.recording.traffic import measure
from workbench.judge.recording.untouched import make_untouched
from workbench.records import encode


def peak_memory() -> int:
    """KiB of this process alone: what getrusage tells is inherited from who started it."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    mend()
    directory = Path(tempfile.mkdtemp())
    for name in names or list(FAMILIES):
        family = FAMILIES[name]
        launcher = load_candidate(family.source, family.entry, family.parameters, directory=directory, name=name)
        traffic = measure(launcher, make_untouched(specs(family, family.dtypes[0], family.real)), budget=8_000)
        print(json.dumps({"family": name, "traffic": encode(traffic), "memory_kib": peak_memory()}), flush=True)


main(sys.argv[1:])
