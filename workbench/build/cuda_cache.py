"""What NVRTC made, kept in a directory, so that the same source is compiled once for a target and a compiler."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One compilation: binary, PTX, the compiler's words, and the mangled name of each kernel."""

    cubin: bytes
    ptx: str
    log: str
    names: Mapping[str, str]


class CudaCache:
    """A directory of entries. A broken file counts as absent, and two processes may write at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = Path(directory)

    @staticmethod
    def key(text: str, kernels: Sequence[str], options: Sequence[str], includes: Sequence[str], target: str, toolchain: str) -> str:
        """Equal where the result is: the text, what is asked of it, the target and the compiler's version."""
        whole = json.dumps([text, list(kernels), list(options), list(includes), target, toolchain])
        return hashlib.sha256(whole.encode()).hexdigest()

    def read(self, key: str) -> Entry | None:
        """The entry; None where there is none."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads((self._directory / f"{key}.json").read_text())
            return Entry(base64.b64decode(kept["cubin"]), kept["ptx"], kept["log"], kept["names"])
        return None

    def write(self, key: str, entry: Entry) -> None:
        """Keeps an entry. A full disk is no fault of the build."""
        kept = {"cubin": base64.b64encode(entry.cubin).decode(), "ptx": entry.ptx, "log": entry.log, "names": dict(entry.names)}
        with contextlib.suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(dir=self._directory)
            with os.fdopen(handle, "w") as file:
                json.dump(kept, file)
            Path(path).replace(self._directory / f"{key}.json")
