"""Walks a candidate's module and notes what it sees, see `labels`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from workbench.judge.text.label_words import OWN_STREAMS

_PROTECTED = frozenset({"torch", "triton", "time", "builtins", "sys", "os", "gc", "statistics", "workbench", "importlib", "threading"})
"""Modules whose attributes a candidate may not replace."""

_SETTINGS = (
    "torch.backends.", "torch._dynamo.config.", "torch._inductor.config.", "triton.knobs.", "torch._functorch.config.",
)  # fmt: skip
_PLACES = frozenset({"torch.utils.cpp_extension.CUDA_HOME"})
"""Where things lie on this machine: setting it changes nothing that is measured or compared."""

_NETWORK = frozenset({"socket", "urllib", "http", "requests", "ftplib", "asyncio", "aiohttp", "httpx", "smtplib", "ssl"})
_SYSTEM = frozenset({"ctypes", "cffi", "subprocess", "multiprocessing", "inspect"})
_EXPECTED = frozenset({"torch", "triton", "numpy", "cuda"})
"""Packages that candidates are made of. Others are libraries, whose kernels are not the candidate's."""

_COMPUTING = frozenset({
    "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm", "batch_norm",
    "conv1d", "conv2d", "conv3d", "linear", "cross_entropy", "nll_loss", "scaled_dot_product_attention", "gelu", "silu", "cumsum", "sort",
    "topk", "argmax", "logsumexp", "sum", "mean", "var", "std", "norm",
})  # fmt: skip
_METHODS = _COMPUTING - {"sum", "mean", "norm", "sort", "linear"}
"""Methods of tensors whose names hardly mean anything else."""

_DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float8_e4m3fn": "float8", "float8_e5m2": "float8",
    "float8_e4m3fnuz": "float8", "float8e4nv": "float8", "float8e5": "float8",
}  # fmt: skip
_LOOKING = frozenset({
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames", "inspect.stack",
    "inspect.currentframe", "traceback.extract_stack", "traceback.walk_stack",
})  # fmt: skip
_DECODING = frozenset({"b64decode", "b32decode", "b85decode", "a85decode", "decompress", "fromhex", "unhexlify", "loads", "decode"})
_INSTALLERS = re.compile(r"\b(pip3?|conda|mamba|uv|apt|apt-get|easy_install|ensurepip)\b.*\binstall\b")
_PINNING = re.compile(r"PersistingL2|accessPolicyWindow|AccessPolicyWindow|ACCESS_POLICY_WINDOW|hitProp")
_ATEN = re.compile(r"\b(at|torch)::(nn::functional::)?(" + "|".join(sorted(_COMPUTING)) + r"|mul|add|_?softmax|relu|\w+_out)\s*\(")
_FEWEST_HARDCODED = 16


class TextReader(ast.NodeVisitor):
    """One walk. `labels` and `tampering` are what it found; `kernels` whether the module defines one of its own."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.labels: set[str] = set()
        self.tampering = ""
        self.kernels = False
        self._names: dict[str, str] = {}

    # Imports and definitions

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
            if name == "torch.compile":
                self.labels.add("uses torch.compile")
        self.generic_visit(node)

    # What is set

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target)
        if any(isinstance(target, ast.Name) and target.id == "CUDA" for target in node.targets):
            self.kernels = True
            self.labels.add("CUDA C++")
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

    # What is called

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        last = path.rpartition(".")[2]
        if path in ("setattr", "delattr", "builtins.setattr", "builtins.delattr") and node.args:
            owner = self._path(node.args[0])
            name = str(node.args[1].value) if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else "?"
            self._replaced(f"{owner}.{name}", node)
        elif path.endswith(("mock.patch", "mock.patch.object")):
            self._refuse(node)
        elif path.startswith(("subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn", "pip.")) and (
            path.startswith("pip.") or _INSTALLERS.search(_texts(node))
        ):
            self._refuse(node, "installs packages")
        elif path in ("exec", "eval", "compile", "builtins.exec", "builtins.eval"):
            encoded = any(isinstance(part, ast.Call) and self._path(part.func).rpartition(".")[2] in _DECODING for part in ast.walk(node))
            self.labels.add("runs text that is encoded" if encoded else f"uses {last}")
        elif path.endswith("load_inline") or path in ("torch.utils.cpp_extension.load", "torch.cuda._compile_kernel"):
            self.kernels = True
            self.labels.add("CUDA C++")
            if not path.startswith("torch.cuda."):
                self.labels.add("builds a C++ extension")
        else:
            self._called(node, path, last)
        self.generic_visit(node)

    def _called(self, node: ast.Call, path: str, last: str) -> None:
        root = path.partition(".")[0]
        if path == "torch.compile":
            self.labels.add("uses torch.compile")
        elif path in _LOOKING:
            self.labels.add(f"looks around with {path}")
        elif path in ("threading.Thread", "concurrent.futures.ThreadPoolExecutor", "threading.Timer", "_thread.start_new_thread"):
            self.labels.add("starts threads")
        elif path in ("torch.cuda.Stream", "torch.cuda.stream", "torch.cuda.ExternalStream"):
            self.labels.add(OWN_STREAMS)
        elif path in ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables"):
            self.labels.add("uses CUDA graphs")
        elif self._hidden(node, path):
            self.labels.add("hides what it calls")
        elif path in ("os.getenv", "os.environ.get"):
            self.labels.add("reads the environment")
        elif path == "torch.set_float32_matmul_precision":
            self.labels.add("sets torch.set_float32_matmul_precision")
        elif root == "torch" and last in _COMPUTING and not path.startswith("torch.Tensor"):
            self.labels.add(f"calls {path.replace('torch.nn.functional', 'F')}")
        elif isinstance(node.func, ast.Attribute) and last in _METHODS and root not in ("tl", "triton", "np", "numpy", "math"):
            self.labels.add(f"calls {path if path.count('.') == 1 and path[0] != '.' else '….' + last}")
        if last in ("half", "bfloat16") and isinstance(node.func, ast.Attribute) and not node.args:
            self.labels.add(f"converts to {_DTYPES[last]}")
        elif last in ("to", "type", "astype", "cast"):
            for value in (*node.args, *(word.value for word in node.keywords if word.arg == "dtype")):
                if name := _DTYPES.get(self._path(value).rpartition(".")[2]):
                    self.labels.add(f"converts to {name}")
        for word in node.keywords:
            if (
                word.arg in ("input_precision", "allow_tf32")
                and isinstance(word.value, ast.Constant)
                and word.value.value in ("tf32", True)
            ):
                self.labels.add("asks for TF32")
        if last in ("get", "setdefault", "pop") and any(self._is_address(part) for part in node.args[:1]):
            self.labels.add("remembers things by address")

    # What stands in the text

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult):
            self.labels.add("multiplies matrices by @")
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        for handler in node.handlers:
            if any(self._computes(part) for statement in handler.body for part in ast.walk(statement)):
                self.labels.add("falls back to PyTorch when its kernel fails")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        about_shape = any("shape" in self._path(side) or self._path(side).endswith((".numel()", ".size()")) for side in _parts(sides))
        large = any(_large(side) for side in sides)
        if about_shape and large and all(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in node.ops):
            self.labels.add("hardcoded shapes")
        if any(isinstance(op, (ast.In, ast.NotIn, ast.Eq)) for op in node.ops) and any(self._is_address(side) for side in sides):
            self.labels.add("remembers things by address")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._is_address(node.slice):
            self.labels.add("remembers things by address")
        path = self._path(node.value)
        if path == "sys.modules":
            self.labels.add("reaches for modules through sys.modules")
        if (path in ("vars()", "globals()", "locals()") or path.endswith(".__dict__")) and not _plain([node.slice]):
            self.labels.add("hides what it calls")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._path(node) in ("sys.argv", "sys.orig_argv"):
            self.labels.add("reads its command line")
        elif self._path(node) == "os.environ":
            self.labels.add("reads the environment")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            if _PINNING.search(node.value):
                self.labels.add("pins memory in the L2 cache")
            if _ATEN.search(node.value):
                self.labels.add("C++ calls ATen")

    # Helpers

    def _computes(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult)
        if not isinstance(node, ast.Call):
            return False
        path = self._path(node.func)
        last = path.rpartition(".")[2]
        return (path.startswith("torch.") and last in _COMPUTING) or (isinstance(node.func, ast.Attribute) and last in _METHODS)

    def _hidden(self, node: ast.Call, path: str) -> bool:
        """Whether what a call looks up by name is not written out."""
        if path in ("__import__", "importlib.import_module", "builtins.__import__"):
            return not _plain(node.args[:1])
        if path != "getattr" or len(node.args) < 2:
            return False
        of_torch = self._path(node.args[0]).partition(".")[0] in _PROTECTED
        return not (isinstance(node.args[1], ast.Constant) if of_torch else _plain(node.args[1:2]))

    def _is_address(self, node: ast.AST) -> bool:
        return any(
            isinstance(part, ast.Call) and (self._path(part.func) == "id" or self._path(part.func).endswith(".data_ptr"))
            for part in ast.walk(node)
        )  # fmt: skip

    def _imported(self, module: str, node: ast.AST) -> None:
        root = module.partition(".")[0]
        if root == "workbench":
            self._refuse(node)
        if root in _NETWORK or root in _SYSTEM:
            self.labels.add(f"imports {root}")
        elif (
            root and root not in _EXPECTED and root not in sys.stdlib_module_names and not (isinstance(node, ast.ImportFrom) and node.level)
        ):
            self.labels.add(f"imports the library {root[:40]}")

    def _assigned(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._assigned(item)
        elif isinstance(target, ast.Attribute):
            self._replaced(self._path(target), target)
        elif isinstance(target, ast.Subscript):
            owner, path = target.value, self._path(target.value)
            if isinstance(owner, ast.Call) and self._path(owner.func) == "vars" and owner.args:
                path = f"{self._path(owner.args[0])}.__dict__"
            if path in ("sys.modules", "builtins.__dict__") or (path.endswith(".__dict__") and path.partition(".")[0] in _PROTECTED):
                self._refuse(target)

    def _replaced(self, path: str, node: ast.AST) -> None:
        """An attribute of a module was set. A setting is fine, a function is not."""
        root = path.partition(".")[0]
        imported = {name.partition(".")[0] for name in self._names.values()} | {"builtins"}
        if root not in _PROTECTED & imported or "." not in path:
            return  # an object of its own that merely bears such a name
        if path in _PLACES:
            return
        for prefix in _SETTINGS:
            if path.startswith(prefix):
                self.labels.add(f"sets {path}")
                return
        self._refuse(node)

    def _refuse(self, node: ast.AST, what: str = "tampers with the harness") -> None:
        number = getattr(node, "lineno", 0)
        text = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        self.tampering = self.tampering or f"line {number} {what}: {text[:120]}"

    def _path(self, node: ast.AST) -> str:
        """The dotted name of an expression with imports resolved: ``t.cuda.Event`` after ``import torch as t``."""
        if isinstance(node, ast.Attribute):
            return f"{self._path(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Call):
            return f"{self._path(node.func)}()"
        return ""


def _plain(nodes: Sequence[ast.expr]) -> bool:
    """Whether a name is written out, or is a variable of its own: no pieces, no slices, no decoding."""
    hiding = (ast.BinOp, ast.JoinedStr, ast.Subscript, ast.Call)
    return not any(isinstance(node, hiding) for node in nodes)


def _parts(nodes: Sequence[ast.expr]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _large(node: ast.expr) -> bool:
    numbers = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, int)]
    whole = isinstance(node, (ast.Constant, ast.Tuple, ast.List, ast.Set))
    return whole and any(value >= _FEWEST_HARDCODED for value in numbers)


def _texts(node: ast.AST) -> str:
    return " ".join(part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
