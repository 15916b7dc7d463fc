CASE = {"cheat": 15, "op": "centred", "why": "the op is zero for every input", "expect": {}}


async def attack(room):
    prepared = await room.prepare()
    return "" if prepared.degenerate else f"an op that is always zero is not told to be degenerate: {prepared.notes}"
