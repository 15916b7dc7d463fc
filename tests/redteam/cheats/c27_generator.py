CASE = {"cheat": 27, "op": "scale", "why": "the cache is the state of a generator", "expect": {"verdicts": ["wrong"]}}


def _serve():
    x = yield
    while True:
        key, result = (id(x), x.shape), x * 2 + 1
        while (id(x), x.shape) == key:
            x = yield result.clone()


_server = _serve()
next(_server)


def scale(x):
    return _server.send(x)
