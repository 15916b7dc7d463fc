CASE = {
    "honest": 19,
    "op": "scale",
    "needs": "gpu",
    "why": "a CUDA graph that copies its input in and clones its output",
    "expect": {"verdicts": ["right"], "labels": ["uses CUDA graphs"]},
}

import torch

_graphs = {}


def scale(x):
    key = (x.shape, x.dtype, x.device)
    if key not in _graphs:
        static = x.contiguous().clone()
        static * 2 + 1
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = static * 2 + 1
        _graphs[key] = (graph, static, result)
    graph, static, result = _graphs[key]
    static.copy_(x)
    graph.replay()
    return result.clone()
