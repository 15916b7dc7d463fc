CASE = {
    "cheat": 55,
    "op": "large",
    "needs": "gpu",
    "full": True,
    "why": "a graph of the same kernels against launches one by one",
    "expect": {},
}

SOURCE = """
import torch

_graphs = {}

def large(x):
    if x.shape not in _graphs:
        static = x.clone()
        torch.relu(static) * 2
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.relu(static) * 2
        _graphs[x.shape] = graph, static, y
    graph, static, y = _graphs[x.shape]
    static.copy_(x)
    graph.replay()
    return y.clone()
"""


async def attack(room):
    found = await room.judge(SOURCE, mode="full")
    if found.speedup is None:
        return f"no speedup: {found.verdict.value}: {found.reason}"
    return "" if found.speedup.low < 1.1 else f"the same kernels with two more copies are {found.speedup.ratio} times as fast"
