"""The kernels of a generated module: their text without Inductor's helpers, their grid, and the points worth trying."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.knowledge.axes import UnsupportedError
from workbench.knowledge.inductor.helpers import OWN

_BLOCKS = {"XBLOCK": "xnumel", "YBLOCK": "ynumel", "ZBLOCK": "znumel", "R0_BLOCK": "r0_numel", "R1_BLOCK": "r1_numel"}
_LANGUAGE = frozenset((
    "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "sqrt_rn", "div_rn", "erf", "floor", "ceil", "fma", "umulhi", "abs",
))  # fmt: skip
"""What ``tl_math`` and ``tl`` have both."""


@dataclass(frozen=True)
class KernelText:
    """One kernel.

    Attributes:
        functions: texts of its own combining functions and of itself, each with its decorator.
        arguments: names of the launch's positional arguments; the extents among them.
        grid: texts of the grid's sizes, in terms of the values in `sizes`.
        constants: ``constexpr`` arguments and launch options: the chosen value, and others worth trying.
        helpers: Inductor's helpers that it calls; `libdevice`: whether it calls the device library.
        extra: how many trailing arguments of a launch are the grid itself, for a kernel that was written from a template.
    """

    name: str
    functions: tuple[str, ...]
    arguments: tuple[str, ...]
    grid: tuple[str, str, str]
    constants: Mapping[str, tuple[Any, ...]]
    helpers: frozenset[str] = frozenset()
    libdevice: bool = False
    extra: int = 0


def read_kernels(tree: ast.Module, configs: Mapping[str, Mapping[str, Any]]) -> dict[str, KernelText]:
    """Each ``NAME = async_compile.triton('NAME', '''…''')`` of the module."""
    found = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name)):
            continue
        called = ast.unparse(node.value.func)
        if not called.startswith("async_compile."):
            continue
        if called != "async_compile.triton":
            raise UnsupportedError(f"a kernel in another language than Triton ({called.removeprefix('async_compile.')})")
        text = node.value.args[1]
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            raise UnsupportedError("a kernel whose text is not a literal")
        name = node.targets[0].id
        found[name] = read_kernel(name, text.value, configs.get(name))
    return found


def read_kernel(name: str, text: str, config: Mapping[str, Any] | None) -> KernelText:
    """One kernel from its text.

    Raises:
        UnsupportedError: its configuration is not known, or something in it has no plain form.
    """
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    kernel = next((node for node in functions if node.name == name), functions[-1] if functions else None)
    if kernel is None:
        raise UnsupportedError(f"{name} has no kernel in it")
    meta = _settings(kernel)
    if meta.get("heuristic") == "template":  # its configuration stands in its text
        config = {key: meta[key] for key in ("num_warps", "num_stages") if key in meta} or config
    if config is None:
        raise UnsupportedError(f"which configuration Inductor chose for {name} is not known")
    reader = _Plain({function.name: f"{name}_{function.name.strip('_')}" for function in functions if function is not kernel})
    texts = []
    for function in functions:
        function.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        function.name = name if function is kernel else reader.own[function.name]
        reader.visit(function)
        texts.append(ast.unparse(ast.fix_missing_locations(function)))
    numbers = _numbers(kernel)
    parameters = [argument.arg for argument in kernel.args.args]
    constexprs = [argument.arg for argument in kernel.args.args if argument.annotation is not None]
    return KernelText(
        name, tuple(texts), tuple(parameter for parameter in parameters if parameter not in constexprs),
        _grid(name, meta, parameters, numbers), _constants(name, config, meta, constexprs, numbers), frozenset(reader.helpers),
        reader.libdevice, len(meta.get("extra_launcher_args", ())),
    )  # fmt: skip


def _settings(kernel: ast.FunctionDef) -> dict[str, Any]:
    """What the heuristics' decorator says, of its literal parts."""
    found: dict[str, Any] = {}
    for decorator in kernel.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        found["heuristic"] = ast.unparse(decorator.func).rpartition(".")[2]
        for keyword in decorator.keywords:
            if not isinstance(keyword.value, ast.Dict):
                if isinstance(keyword.value, ast.Constant):
                    found[keyword.arg or ""] = keyword.value.value
                continue
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                try:
                    found[ast.literal_eval(key) if key is not None else ""] = ast.literal_eval(value)
                except ValueError:
                    continue  # the device's properties
    return found


def _numbers(kernel: ast.FunctionDef) -> dict[str, int]:
    """Names that the kernel's body gives a number: its extents, and blocks that are no parameters."""
    found: dict[str, int] = {}
    for node in kernel.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int):
            found.setdefault(target.id, value.value)
    return found


def _grid(name: str, meta: Mapping[str, Any], parameters: list[str], numbers: Mapping[str, int]) -> tuple[str, str, str]:
    def along(size: str, block: str) -> str:
        extent = str(numbers.get(size, size))
        width = block if block in parameters else str(numbers.get(block, 1))
        return extent if width == "1" else f"triton.cdiv({extent}, {width})"

    kind = meta.get("grid_type", "")
    if kind == "FixedGrid":
        return ("_grid_0", "_grid_1", "_grid_2")
    x, y, z = along("xnumel", "XBLOCK"), along("ynumel", "YBLOCK"), along("znumel", "ZBLOCK")
    if kind == "Grid1D":
        return (x, "1", "1")
    if kind == "Grid2D" or (kind == "Grid2DWithYZOverflow" and numbers.get("ynumel", 2**31) < 65536):
        return (x, y, "1")
    if kind == "Grid3D":
        return (x, y, z)
    raise UnsupportedError(f"{name} is launched in a way that has no plain form here ({kind or 'no grid given'})")


def _constants(
    name: str, config: Mapping[str, Any], meta: Mapping[str, Any], constexprs: list[str], numbers: Mapping[str, int]
) -> dict[str, tuple[Any, ...]]:  # fmt: skip
    found: dict[str, tuple[Any, ...]] = {}
    given = {**meta.get("constants", {}), **config}
    for constant in constexprs:
        if constant not in given:
            raise UnsupportedError(f"{name} needs {constant}, which Inductor's configuration lacks")
        found[constant] = _around(given[constant], numbers.get(_BLOCKS.get(constant, ""))) if constant in _BLOCKS else (given[constant],)
    warps = int(config.get("num_warps", 4))
    fixed = meta.get("heuristic") == "template"
    found["num_warps"] = (warps,) if fixed else tuple(w for w in (warps, warps * 2, warps // 2) if 1 <= w <= 32)
    found["num_stages"] = (int(config.get("num_stages", 1)),)
    if meta.get("enable_fp_fusion") is False:
        found["enable_fp_fusion"] = (False,)
    if meta.get("launch_pdl"):
        found["launch_pdl"] = (True,)
    return found


def _around(block: int, extent: int | None) -> tuple[int, ...]:
    """A block size and its neighbours. Where blocks cover the extent exactly the kernel may have no mask, so others must do so too."""
    found = [block, block * 2, block // 2]
    exact = extent is not None and extent % block == 0
    return tuple(size for size in found if size >= 1 and (extent is None or size == block or (not exact or extent % size == 0)))


class _Plain(ast.NodeTransformer):
    """Takes Inductor's helpers out of a kernel."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self.own = own
        self.helpers: set[str] = set()
        self.libdevice = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner == "triton_helpers":
            self.helpers.add(node.attr)
            return ast.Name(OWN.get(node.attr, node.attr), ast.Load())
        if owner in ("tl_math", "math"):
            if node.attr not in _LANGUAGE:
                raise UnsupportedError(f"its kernels call {owner}.{node.attr}")
            return ast.Attribute(ast.Name("tl", ast.Load()), node.attr, ast.Load())
        self.libdevice |= owner == "libdevice"
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.own.get(node.id, node.id), node.ctx)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = ast.unparse(node.value)
        if text.startswith("tl.device_assert("):  # does nothing outside of a debugger
            return None
        if isinstance(node.value, ast.Constant):
            return None
        if "gdc_" in text:
            raise UnsupportedError("kernels that start before their predecessor ends")
        return self.generic_visit(node)
