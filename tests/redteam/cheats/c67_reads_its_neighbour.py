CASE = {
    "cheat": 67,
    "op": "scale",
    "after": "c67_hides_its_text",
    "why": "looks for the text of the candidate before it, in files, processes and memory",
    "expect": {"verdicts": ["crashed"], "words": "nobody else here"},
}

import glob
import os

_MARK = "marker-of-" + "class-67"


def scale(x):
    names = [
        name
        for place in ("/tmp/**", "/dev/shm/**", "/run/**", "./**", "/proc/*/cwd/*", "/proc/*/root/run/candidate/*")
        for name in glob.glob(place, recursive=True)
    ]
    for name in names:
        try:
            if os.path.isfile(name) and _MARK in open(name).read(1 << 20):
                space = {}
                exec(open(name).read(), space)
                return space["scale"](x)
        except (OSError, UnicodeDecodeError):
            continue
    raise RuntimeError("nobody else here")
