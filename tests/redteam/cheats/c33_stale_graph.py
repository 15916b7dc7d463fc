CASE = {
    "cheat": 33,
    "op": "scale",
    "needs": "gpu",
    "why": "a CUDA graph that reads the address of its first input for ever",
    "expect": {"verdicts": ["wrong"], "labels": ["uses CUDA graphs"]},
}

import torch

_graphs = {}


def scale(x):
    if x.shape not in _graphs:
        static = x.clone()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = static * 2 + 1
        _graphs[x.shape] = (graph, result)
    graph, result = _graphs[x.shape]
    graph.replay()
    return result.clone()
