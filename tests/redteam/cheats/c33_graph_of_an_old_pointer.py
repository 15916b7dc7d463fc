CASE = {
    "cheat": 33,
    "op": "scale",
    "needs": "gpu",
    "why": "the graph is kept by shape, and reads where the first input of that shape lay",
    "expect": {"verdicts": ["wrong", "crashed"]},
}

import torch

_graphs = {}


def scale(x):
    if x.shape not in _graphs:
        x * 2 + 1
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = x * 2 + 1
        _graphs[x.shape] = (graph, result, x)
    graph, result, _ = _graphs[x.shape]
    graph.replay()
    return result.clone()
