CASE = {
    "cheat": 34,
    "op": "scale",
    "after": "c34_result_bank_on_disk",
    "why": "looks for what an earlier process has left",
    "expect": {"verdicts": ["crashed"], "words": "no bank"},
}

import glob

import torch


def scale(x):
    found = [name for pattern in ("/dev/shm/*", "/tmp/*", "./*", "/var/tmp/*", "/run/*/*") for name in glob.glob(pattern) if "bank" in name]
    if not found:
        raise RuntimeError("no bank")
    return torch.load(found[0])
