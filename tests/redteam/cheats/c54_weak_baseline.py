CASE = {"cheat": 54, "op": "softmax", "why": "a speedup against the slower baseline, or on smaller shapes", "expect": {}}

SOURCE = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"


async def attack(room):
    fleet = room.fresh(None)  # with all baselines that there are
    try:
        prepared = await fleet.prepare(None)
        names = [baseline.name for baseline in prepared.baselines]
        if names != ["eager", "compile"] or any(not base.timing and not base.reason for base in prepared.baselines):
            return f"baselines: {prepared.baselines}"
        for _ in range(3):
            found = await room.judge(SOURCE, fleet=fleet)
            if found.speedup is not None:
                break
        if found.speedup is None:
            return f"no speedup: {found.reason}"
        timed = {base.name: base.timing.median_us for base in prepared.baselines if base.timing}
        if found.speedup.against != min(timed, key=timed.get):
            return f"the speedup is against {found.speedup.against}, of {timed}"
        return ""
    finally:
        await fleet.close()
