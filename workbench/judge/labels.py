"""What a candidate's text shows before it runs.

Text proves little: every rule of this kind can be written around, and honest code trips over most of them. So what is found here are
labels, shown beside the result. One thing is refused: putting something else in the place of the clock, of PyTorch's functions, or of the
judge. No kernel needs that.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_PROTECTED = frozenset({"torch", "triton", "time", "builtins", "sys", "os", "gc", "statistics", "workbench", "importlib", "threading"})
"""Modules whose attributes a candidate may not replace."""

_SETTINGS = (
    "torch.backends.", "torch._dynamo.config.", "torch._inductor.config.", "triton.knobs.", "torch._functorch.config.",
)  # fmt: skip
_NETWORK = frozenset({"socket", "urllib", "http", "requests", "ftplib", "asyncio", "aiohttp", "httpx", "smtplib", "ssl"})
_COMPUTING = frozenset({
    "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "batch_norm",
    "conv1d", "conv2d", "conv3d", "linear", "cross_entropy", "nll_loss", "scaled_dot_product_attention", "gelu", "silu", "cumsum", "sort",
    "topk", "argmax", "logsumexp", "sum", "mean", "var", "std", "norm",
})  # fmt: skip
_TAMPERING_RULES = frozenset({"TIMER_MONKEYPATCH", "TORCH_VALIDATION_MONKEYPATCH", "HARNESS_RUNTIME_PATCHING", "RUNTIME_PACKAGE_INSTALL"})


@dataclass(frozen=True)
class Reading:
    """What the text shows.

    Attributes:
        labels: facts, sorted.
        tampering: the offending line in words; empty for all honest code.
        error: why it is no Python module; empty for those that are.
    """

    labels: tuple[str, ...] = ()
    tampering: str = ""
    error: str = ""


def read(source: str) -> Reading:
    """Reads a candidate's module without running it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return Reading(error=f"{type(error).__name__}: {getattr(error, 'msg', error)}" + (f" (line {line})" if line else ""))
    try:
        visitor = _Reader(source.splitlines())
        visitor.visit(tree)
    except RecursionError:
        return Reading(error="the module is nested too deeply")
    labels = visitor.labels
    if not visitor.kernels:
        labels.add("no Triton kernel")
    guard_labels, guard_hit = _kernelguard(source)
    tampering = visitor.tampering or guard_hit
    return Reading(tuple(sorted(labels | guard_labels)), tampering)


class _Reader(ast.NodeVisitor):
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.labels: set[str] = set()
        self.tampering = ""
        self.kernels = False
        self._names: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
            self._imported(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        self._imported(node.module or "", node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            name = self._path(decorator.func if isinstance(decorator, ast.Call) else decorator)
            self.kernels |= name in ("triton.jit", "triton.runtime.jit.jit") or name.endswith(".jit")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target)
        if any(isinstance(target, ast.Name) and target.id == "CUDA" for target in node.targets):
            self.kernels = True
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._assigned(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._assigned(node.target)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._assigned(target)

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        root, last = path.partition(".")[0], path.rpartition(".")[2]
        if path in ("setattr", "delattr", "builtins.setattr") and node.args:
            owner = self._path(node.args[0])
            name = str(node.args[1].value) if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else "?"
            self._replaced(f"{owner}.{name}", node)
        elif path.endswith(("mock.patch", "mock.patch.object")):
            self._refuse(node)
        elif path in ("exec", "eval", "compile", "builtins.exec", "builtins.eval"):
            self.labels.add(f"uses {last}")
        elif path == "torch.compile":
            self.labels.add("uses torch.compile")
        elif path in ("gc.get_objects", "sys._getframe", "inspect.stack", "inspect.currentframe", "gc.get_referrers"):
            self.labels.add(f"looks around with {path}")
        elif path in ("threading.Thread", "concurrent.futures.ThreadPoolExecutor"):
            self.labels.add("starts threads")
        elif path in ("torch.cuda.Stream", "torch.cuda.stream"):
            self.labels.add("uses CUDA streams")
        elif path in ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables"):
            self.labels.add("uses CUDA graphs")
        elif root == "torch" and last in _COMPUTING and not path.startswith("torch.Tensor"):
            self.labels.add(f"calls {path.replace('torch.nn.functional', 'F')}")
        self.generic_visit(node)

    def _imported(self, module: str, node: ast.AST) -> None:
        root = module.partition(".")[0]
        if root == "workbench":
            self._refuse(node)
        if root in _NETWORK:
            self.labels.add(f"imports {root}")
        if root in ("ctypes", "cffi", "subprocess", "multiprocessing", "inspect"):
            self.labels.add(f"imports {root}")

    def _assigned(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._assigned(item)
        elif isinstance(target, ast.Attribute):
            self._replaced(self._path(target), target)
        elif isinstance(target, ast.Subscript):
            path = self._path(target.value)
            if path in ("sys.modules", "builtins.__dict__") or (path.endswith(".__dict__") and path.partition(".")[0] in _PROTECTED):
                self._refuse(target)

    def _replaced(self, path: str, node: ast.AST) -> None:
        """An attribute of a module was set. A setting is fine, a function is not."""
        root = path.partition(".")[0]
        imported = {name.partition(".")[0] for name in self._names.values()} | {"builtins"}
        if root not in _PROTECTED & imported or "." not in path:
            return  # an object of its own that merely bears such a name
        for prefix in _SETTINGS:
            if path.startswith(prefix):
                self.labels.add(f"sets {path}")
                return
        self._refuse(node)

    def _refuse(self, node: ast.AST) -> None:
        number = getattr(node, "lineno", 0)
        text = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        self.tampering = self.tampering or f"line {number} tampers with the harness: {text[:120]}"

    def _path(self, node: ast.expr) -> str:
        """The dotted name of an expression with imports resolved: ``t.cuda.Event`` after ``import torch as t``."""
        if isinstance(node, ast.Attribute):
            return f"{self._path(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Call):
            return f"{self._path(node.func)}()"
        return ""


@functools.cache
def kernelguard_available() -> bool:
    """Whether the optional scanner is installed."""
    return importlib.util.find_spec("kernelguard") is not None


def _kernelguard(source: str) -> tuple[set[str], str]:
    """Labels of the optional scanner; its tampering rules refuse as ours do."""
    if not kernelguard_available():
        return set(), ""
    import kernelguard

    try:
        report: Mapping[str, object] = kernelguard.analyze_code(source, compute_structural_hash=False)
    except Exception as error:
        return {f"KernelGuard could not read it ({type(error).__name__})"}, ""
    hits = list(_hits(report))
    tampering = next((f"KernelGuard {name}: {evidence}" for name, evidence in hits if name in _TAMPERING_RULES), "")
    return {f"KernelGuard: {name}" for name, _ in hits}, tampering


def _hits(report: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    found = report.get("matched_patterns", ())
    for item in found if isinstance(found, (list, tuple)) else ():
        if isinstance(item, Mapping) and item.get("pattern"):
            yield str(item["pattern"]), str(item.get("evidence", ""))[:120]
