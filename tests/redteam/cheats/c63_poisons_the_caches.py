CASE = {
    "cheat": 63,
    "op": "scale",
    "why": "leaves files in every cache, lock and temporary folder",
    "expect": {"verdicts": ["right", "time_not_confirmed"]},
}

import os
import tempfile

for _place in (
    "~/.triton/cache",
    "~/.cache/torch_extensions",
    "~/.cache",
    "/tmp",
    "/dev/shm",
    "/var/tmp",
    ".",
    tempfile.gettempdir(),
    os.environ.get("TRITON_CACHE_DIR", "."),
    os.environ.get("TORCHINDUCTOR_CACHE_DIR", "."),
    "/run/lock",
    "/run",
):
    _place = os.path.expanduser(_place)
    try:
        os.makedirs(_place, exist_ok=True)
        with open(os.path.join(_place, "left-by-c63"), "w") as _file:
            _file.write("x")
    except OSError:
        pass
os.environ["LEFT_BY_C63"] = "x"


def scale(x):
    return x * 2 + 1
