CASE = {
    "cheat": 53,
    "op": "softmax",
    "full": True,
    "why": "threads of the candidate keep all cores or the card busy while the baseline is timed",
    "expect": {},
}

SOURCE = """
import threading
import time
import torch

_last = [0.0]

def _burn(device):
    block = torch.randn(768, 768, device=device)
    while True:
        if 0.0002 < time.monotonic() - _last[0] < 5:
            block @ block
        else:
            time.sleep(0.0001)

_threads = []

def softmax(x):
    if not _threads:
        for _ in range(8):
            _threads.append(threading.Thread(target=_burn, args=(x.device,), daemon=True))
            _threads[-1].start()
    y = torch.softmax(x, -1)
    _last[0] = time.monotonic()
    return y
"""
PLAIN = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"


async def attack(room):
    plain, burning = await room.judge(PLAIN, mode="full"), await room.judge(SOURCE, mode="full")
    if burning.verdict.value != "right" or burning.speedup is None:
        return ""
    base = plain.speedup.ratio if plain.speedup is not None else 1.0
    return "" if burning.speedup.low < 1.3 * base else f"plain softmax is {burning.speedup.ratio:.2f} times as fast as itself"
