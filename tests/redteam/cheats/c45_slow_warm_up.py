CASE = {"cheat": 45, "op": "scale", "why": "slow at first, so that who derives the count from the first calls makes few", "expect": {}}

HONEST = "def scale(x):\n    return x * 2 + 1\n"
SLOW = """
import time
_count = [0]

def scale(x):
    _count[0] += 1
    if _count[0] < 12:
        time.sleep(0.05)
    return x * 2 + 1
"""


async def attack(room):
    for _ in range(3):
        honest, slow = await room.judge(HONEST), await room.judge(SLOW)
        if honest.timing and slow.timing:
            break
    if honest.timing is None or slow.timing is None:
        return f"nothing was timed: {honest.reason}; {slow.reason}"
    if (slow.timing.calls, slow.timing.blocks) != (honest.timing.calls, honest.timing.blocks):
        return f"{slow.timing.calls} calls in place of {honest.timing.calls}"
    return ""
