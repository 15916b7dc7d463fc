"""What kind of solution a candidate is, in a few descriptors that two candidates of one strategy share.

They are measured from its code and from the compiled kernels, never taken from what its author says, so that a search can keep different
strategies apart. All are short words of the form ``key:value``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from workbench.candidate import Candidate, Evaluation
from workbench.explain import cuda_strategy


def describe(candidate: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
    """Descriptors in a fixed order of keys.

    >>> describe(Candidate("k1", "triton", "def f(x): return x", "f"), Evaluation("k1.0", "k1", "t", verdict))  # doctest: +SKIP
    ('launches:0', 'pass:one', …)
    """
    found: list[str] = []
    kernels = list(_kernels(candidate.source))
    launches = sum(resource.launches for resource in evaluation.resources)
    if evaluation.modelled is not None:
        launches = evaluation.modelled.launches
    found.append(f"launches:{launches if launches < 3 else 'many'}")
    library = any(label.startswith("calls torch.") for label in evaluation.labels)
    found.append(f"library:{'yes' if library else 'no'}")
    if cuda := cuda_strategy.text_of(candidate.source):
        found += [f"{key}:{value}" for key, value in cuda_strategy.traits(cuda).items()]
        return (*found, *_compiled(evaluation), "language:cuda")
    loops = sum(_loops(kernel) for kernel in kernels)
    found.append(f"pass:{('one', 'loop', 'loops')[min(loops, 2)]}")
    calls = {name for kernel in kernels for name in _calls(kernel)}
    found.append(f"product:{'dot' if calls & {'dot', 'dot_scaled'} else 'no'}")
    found.append(f"combine:{'atomic' if any(name.startswith('atomic_') for name in calls) else 'scan' if calls & _SCANS else 'no'}")
    found.append(f"address:{'descriptor' if calls & _DESCRIPTORS else 'block' if 'make_block_ptr' in calls else 'pointer'}")
    found.append(f"persistent:{'yes' if _persistent(kernels) else 'no'}")
    return (*found, *_compiled(evaluation))


def _compiled(evaluation: Evaluation) -> tuple[str, ...]:
    if not evaluation.resources:
        return ()
    main = max(evaluation.resources, key=lambda item: item.waves * item.launches)
    return (
        f"warps:{main.warps}",
        f"stages:{main.stages}",
        f"vector:{main.vector_bytes}",
        f"cores:{'tensor' if main.tensor_cores else 'plain'}",
        f"occupancy:{_level(main.occupancy)}",
        f"waves:{_count_level(main.waves)}",
    )


_SCANS = frozenset({"associative_scan", "cumsum", "cumprod", "sort", "topk"})
_DESCRIPTORS = frozenset({"make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor", "experimental_descriptor_load"})


def _level(share: float) -> str:
    return "low" if share < 0.3 else "middle" if share < 0.7 else "high"


def _count_level(waves: float) -> str:
    return "part" if waves < 1 else "few" if waves < 4 else "many"


def _kernels(source: str) -> Iterator[ast.FunctionDef]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
            yield node


def _loops(kernel: ast.FunctionDef) -> int:
    """Loops at the kernel's top level: one in another is one walk over the data."""
    found = 0
    todo: list[ast.AST] = list(kernel.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.For, ast.While)):
            if not (isinstance(node, ast.For) and "static_range" in ast.unparse(node.iter)):
                found += 1
            continue
        todo.extend(ast.iter_child_nodes(node))
    return found


def _calls(kernel: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node.func.id


def _persistent(kernels: list[ast.FunctionDef]) -> bool:
    """A loop that steps by the number of programs."""
    for kernel in kernels:
        counts = {
            target.id
            for node in ast.walk(kernel)
            if isinstance(node, ast.Assign) and "num_programs" in ast.unparse(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(kernel):
            if isinstance(node, ast.For):
                text = ast.unparse(node.iter)
                names = {leaf.id for leaf in ast.walk(node.iter) if isinstance(leaf, ast.Name)}
                if "num_programs" in text or names & counts:
                    return True
    return False
