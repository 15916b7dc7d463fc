"""What the expert tests share: tracing an op into a Task, and running many written kernels in one interpreter process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from workbench.capture.tracing import _KeepAttention, _op_name
from workbench.graph import Graph, Node
from workbench.task import InputSpec, OutputSpec, Task, Values, Work


def trace(fn, *args, name="op", target="cuda:90"):
    """A Task of `fn` at these arguments, enough of it for the experts."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]

    def of_tensors(*given):
        rest = iter(given)
        with _KeepAttention():
            return fn(*[next(rest) if isinstance(arg, torch.Tensor) else arg for arg in args])

    traced = make_fx(of_tensors, tracing_mode="fake")(*tensors)
    traced.graph.eliminate_dead_code()
    tensor_names = iter([n for n, arg in zip(names, args, strict=True) if isinstance(arg, torch.Tensor)])
    renamed = {}

    def encode(arg):
        if isinstance(arg, torch.fx.Node):
            return {"ref": renamed[arg]}
        if isinstance(arg, torch.dtype):
            return str(arg).removeprefix("torch.")
        if isinstance(arg, (list, tuple)):
            return tuple(encode(item) for item in arg)
        return arg if isinstance(arg, (int, float, bool, str, type(None))) else str(arg)

    nodes, outputs = [], ()
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            renamed[node] = next(tensor_names)
        elif node.op == "output":
            flat = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
            outputs = tuple(renamed[item] for item in flat)
        else:
            renamed[node] = node.name if node.name not in names else node.name + "_n"
            value = node.meta["val"]
            value = value[0] if isinstance(value, (tuple, list)) else value
            op = "getitem" if "getitem" in str(node.target) else _op_name(node.target)
            nodes.append(
                Node(
                    renamed[node], op, encode(node.args), {k: encode(v) for k, v in node.kwargs.items()}, tuple(value.shape), _dtype(value)
                )
            )
    specs = tuple(
        InputSpec(n, tuple(arg.shape), _dtype(arg), tuple(arg.stride()), Values("normal"))
        if isinstance(arg, torch.Tensor)
        else InputSpec(n, (), "python", (), Values("scalar", value=arg))
        for n, arg in zip(names, args, strict=True)
    )
    with torch.device("meta"):
        shown = fn(*[arg.to("meta") if isinstance(arg, torch.Tensor) else arg for arg in args])
    flat = shown if isinstance(shown, (tuple, list)) else (shown,)
    results = tuple(OutputSpec(tuple(t.shape), _dtype(t), tuple(t.stride())) for t in flat)
    return Task(name, "", name, specs, results, Work(0, 0), graph=Graph(tuple(nodes), outputs), target=target)


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def run_interpreted(jobs, directory: Path, timeout=300):
    """Runs jobs, each {source, entry, inputs: path of a saved list}, in one interpreter process; gives outputs, or an error's text."""
    path = directory / "jobs.pt"
    torch.save(jobs, path)
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, __file__, str(path)], env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(directory / "results.pt")


def _serve(path: Path):
    from workbench.build.tune import load_candidate

    try:
        from workbench.judge.emulation.interpreter import mend

        mend()
    except ImportError:
        pass
    results = []
    for number, job in enumerate(torch.load(path)):
        try:
            entry = load_candidate(job["source"], job["entry"], job.get("parameters", {}), directory=path.parent, name=f"job{number}")
            value = entry(*job["inputs"])
            results.append(list(value) if isinstance(value, (tuple, list)) else [value])
        except Exception as error:
            import traceback

            results.append(f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}")
    torch.save(results, path.parent / "results.pt")


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
