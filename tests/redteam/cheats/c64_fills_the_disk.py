CASE = {"cheat": 64, "op": "scale", "why": "writes without end", "expect": {"verdicts": ["crashed"]}}


def scale(x):
    block = b"x" * (1 << 26)
    number = 0
    while True:
        for place in ("/tmp", ".", "/dev/shm"):
            with open(f"{place}/fill-{number}", "wb") as file:
                for _ in range(4):
                    file.write(block)
        number += 1
