CASE = {"cheat": 15, "op": "constant", "why": "the op's result does not depend on its input, so a constant would be right", "expect": {}}


async def attack(room):
    prepared = await room.prepare()
    if not prepared.degenerate:
        return f"the sum of a softmax is not told to be degenerate: {prepared.notes}"
    return ""
