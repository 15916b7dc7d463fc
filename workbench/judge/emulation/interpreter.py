"""Triton's interpreter, mended, so that candidates can be judged without a GPU.

`mend` is called once in a worker whose environment has ``TRITON_INTERPRET=1``, before the candidate is loaded; it can't be undone. After it

- kernels mean on numpy what they mean on the GPU (`_mended`, `_reductions`, `rewrite`, `numerics`, `libdevice`),
- every access is checked against the tensors that the launch was given (`memory`): `OutOfBoundsError`,
- ``@triton.autotune`` takes its first configuration, and honest launchers find the GPU that they ask for (`pretend`),
- what can't be interpreted raises `InterpreterUnsupported`.

TF32 is invisible here: products of float32 are float32's.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner
from triton.tools.tensor_descriptor import TensorDescriptor

from workbench.judge.emulation import _mended as mended
from workbench.judge.emulation import _reductions, rewrite
from workbench.judge.emulation._mended import Now
from workbench.judge.emulation._quicker import quicken
from workbench.judge.emulation.memory import Memory
from workbench.judge.emulation.pretend import Pretend
from workbench.judge.emulation.unsupported import InterpreterUnsupported, OutOfBoundsError
from workbench.target import TARGETS, Target

__all__ = ["InterpreterUnsupported", "Launch", "OutOfBoundsError", "mend"]

_state: dict[str, Any] = {}


def mend(target: Target | None = None) -> None:
    """Mends the interpreter of this process, and makes it answer for `target` (``cuda:90`` by default). A second call does nothing.

    Raises:
        RuntimeError: ``TRITON_INTERPRET`` was not set when triton was imported.
    """
    if _state:
        return
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("set TRITON_INTERPRET=1 in the environment of the process before triton is imported")
    quicken()
    _mend_builder()
    _mend_language()
    _mend_launches()
    pretend = Pretend(target or TARGETS["cuda:90"], poison=True)
    pretend.__enter__()  # for the rest of the process
    _state["pretend"] = pretend


def _mend_builder() -> None:
    builder = interpreter.InterpreterBuilder
    for name, method in mended.METHODS.items():
        setattr(builder, name, method)
    for name in ("create_si_to_fp", "create_ui_to_fp", "create_fp_to_si", "create_fp_to_ui", "create_fp_ext", "create_fp_trunc"):
        setattr(builder, name, mended.cast_impl)
    builder.create_int_cast = lambda self, src, dst_type, is_signed: mended.cast_impl(self, src, dst_type)
    builder.create_int_to_ptr = builder.create_ptr_to_int = mended.create_bitcast
    builder.create_select = lambda self, cond, lhs, rhs: mended.ternary_op(self, cond, lhs, rhs, np.where)
    for name in mended.REARRANGING:
        setattr(builder, name, mended.keep_origin(getattr(builder, name)))
    for dtype in (tl.bfloat16, tl.float8e5, tl.float8e4nv, tl.float8e4b8, tl.float8e5b16):
        setattr(builder, f"get_{dtype.name}", mended.scalar_of(dtype))
    builder.__getattr__ = mended.missing
    for handle in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
        handle.materialize_pointers = mended.keep_base_origin(handle.materialize_pointers)
    interpreter.TensorHandle.origin = None
    interpreter.TensorHandle.__post_init__ = lambda self: None
    interpreter.ReduceOps.generic_reduce = _reductions.reduce_generic
    interpreter.ScanOps.generic_scan = _reductions.scan_generic
    interpreter.ScanOps.cumsum = _reductions.cumulate(np.add)
    interpreter.ScanOps.cumprod = _reductions.cumulate(np.multiply)
    for operation in (interpreter.ReduceOps, interpreter.ScanOps):
        operation.apply = _reductions.widen_soft(operation.apply)
    # The check for overflow of integers is a debugging aid of its own, and doubles the cost of every addition.
    # bf16x6 keeps float32's digits, as the interpreter does anyway.
    precisions = (*interpreter.InterpreterOptions.allowed_dot_input_precisions, "bf16x6")
    options = interpreter.InterpreterOptions(sanitize_overflow=False, allowed_dot_input_precisions=precisions)
    for semantic in (interpreter.interpreter_semantic,):
        semantic.builder.options = options


def _mend_language() -> None:
    """Patches the language's functions once and for all, instead of around each launch and in each call of a device function."""
    before: dict[int, tuple[Any, str]] = {}
    for module in (tl, tl.core, tl.math):
        for name, member in inspect.getmembers(module, callable):
            before[id(member)] = (module, name)
    visible: Any = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    interpreter._patch_lang(visible)
    # Scalars are arrays of one element, which not every numpy turns into a number.
    tl.tensor.__index__ = lambda self: int(self.handle.data.reshape(-1)[0])
    tl.tensor.__bool__ = lambda self: bool(self.handle.data.reshape(-1)[0]) if self.handle.data.size == 1 else True
    _patch_libdevice()
    tl.dot_scaled = tl.core.dot_scaled = _unsupported("dot_scaled")
    # Names that a candidate imported by ``from triton.language import load`` are the unpatched ones: see `_bind`.
    _state["imported"] = {key: getattr(module, name) for key, (module, name) in before.items() if id(getattr(module, name)) != key}
    _state["kept"] = before  # ids stay valid while the objects live
    interpreter._patch_lang = lambda fn: types.SimpleNamespace(restore=lambda: None)


def _patch_libdevice() -> None:
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as cuda
    from triton.language.extra.hip import libdevice as hip

    scope = interpreter._LangPatchScope()
    for module in (cuda, hip):
        interpreter._patch_builtin(module, interpreter.interpreter_builder, scope)
    for name, stub in inspect.getmembers(libdevice, inspect.isfunction):
        found = getattr(cuda, name, None) or getattr(hip, name, None)
        setattr(libdevice, name, found or _unsupported(stub.__name__))
    from triton.language.extra.cuda import gdc

    for name in ("gdc_wait", "gdc_launch_dependents"):
        if hasattr(gdc, name):
            setattr(gdc, name, lambda *args, **kwargs: None)  # programs run one after another anyway
            setattr(tl.extra.cuda, name, getattr(gdc, name))


def _unsupported(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise InterpreterUnsupported(f"{name} can't be interpreted")

    return call


def _mend_launches() -> None:
    function = interpreter.InterpretedFunction
    function.run = _run
    function.__call__ = _call_device_function
    interpreter.FunctionRewriter._transform_ast = _transform
    interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
    Autotuner.run = _first_config


def _transform(self: Any, source: str) -> ast.AST:
    tree: ast.AST = rewrite.Transformer(self.fn.__globals__).visit(ast.parse(source))
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, self.def_file_lineno - 1)
    return tree


def _compile_and_exec(self: Any, tree: Any) -> Any:
    code = compile(tree, filename=self.filename, mode="exec")
    space = self.fn.__globals__
    space.update(rewrite.HELPERS)
    _bind(space)
    local = dict(self.kwargs)
    exec(code, space, local)
    made = local[self.fn.__name__]
    if self.fn.__closure__:
        # The rewritten text knows no enclosing function: what the kernel took from there becomes global to it alone.
        captured = dict(zip(self.fn.__code__.co_freevars, (cell.cell_contents for cell in self.fn.__closure__), strict=True))
        made = types.FunctionType(made.__code__, {**space, **captured}, made.__name__, made.__defaults__, made.__closure__)
        made.__annotations__ = local[self.fn.__name__].__annotations__
    return made


def _bind(space: dict[str, Any]) -> None:
    imported = _state.get("imported", {})
    for name, value in list(space.items()):
        if not name.startswith("__") and id(value) in imported:
            space[name] = imported[id(value)]


def _call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self.rewrite()(*args, **kwargs)


class Launch:
    """One launch that is about to run.

    Attributes:
        kernel: its name; `grid`: programs on three axes.
        arguments: bound by name, as the launcher gave them; `constexprs`: the names that are constants.
        memory: the regions that it may touch.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], grid: Any) -> None:
        fn = function.rewrite()
        names = inspect.getfullargspec(function.fn).args
        self.kernel = function.fn.__name__
        for hook in function.pre_run_hooks:
            hook(*args, **kwargs)
        bound = inspect.signature(function.fn).bind(*args, **{key: value for key, value in kwargs.items() if key in names})
        bound.apply_defaults()
        self.arguments: dict[str, Any] = dict(bound.arguments)
        self.constexprs = [name for name in names if "constexpr" in str(function.fn.__annotations__.get(name, ""))]
        sizes = grid(dict(self.arguments)) if callable(grid) else grid
        sizes = (sizes,) if isinstance(sizes, int) else tuple(int(size) for size in sizes)
        if len(sizes) > 3:
            raise ValueError(f"a grid has at most 3 axes, this one has {len(sizes)}")
        self.grid: tuple[int, int, int] = (*sizes, *(1,) * (3 - len(sizes)))
        self.memory = Memory(self.kernel)
        self._fn = fn
        self._converted = {name: self._convert(name, value) for name, value in self.arguments.items()}

    def _convert(self, name: str, value: Any) -> Any:
        if name in self.constexprs:
            return value.value if isinstance(value, tl.constexpr) else value
        if isinstance(value, tuple):
            items = [self._convert(f"{name}[{index}]", item) for index, item in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else tl.tuple(items)
        if isinstance(value, TensorDescriptor):
            made = mended.as_argument(value, None)
            made.handle.base.origin = self.memory.add(name, value.base)
            return made
        if hasattr(value, "data_ptr"):
            return mended.as_argument(
                value, self.memory.add(name, getattr(value, "base", value) if not hasattr(value, "untyped_storage") else value)
            )
        return mended.as_argument(value, None)

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def indices(self) -> Iterator[tuple[int, int, int]]:
        """All programs, the first axis fastest, as GPUs start them."""
        for z in range(self.grid[2]):
            for y in range(self.grid[1]):
                for x in range(self.grid[0]):
                    yield x, y, z

    def run_program(self, index: tuple[int, int, int]) -> None:
        """Interprets one program."""
        self.memory.program = index
        builder = interpreter.interpreter_builder
        builder.set_grid_dim(*self.grid)
        builder.set_grid_idx(*index)
        before = Now.memory
        Now.memory = self.memory
        try:
            with np.errstate(all="ignore"):
                self._fn(**self._converted)
        finally:
            Now.memory = before


class WarmedUp:
    """What ``kernel.warmup(…)`` returns: a launcher may size its grid by the figures."""

    n_regs = 64
    n_spills = 0
    metadata = types.SimpleNamespace(shared=0, num_warps=4, num_stages=3, num_ctas=1)

    def _init_handles(self) -> None: ...


def _run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    if warmup:
        return WarmedUp()
    launch = Launch(self, args, kwargs, grid)
    observer = _state.get("launched")
    if observer is not None:
        observer(launch)
        return WarmedUp()
    for index in launch.indices():
        launch.run_program(index)
    return WarmedUp()


def set_observer(observer: Callable[[Launch], None] | None) -> None:
    """From now on each launch is given to `observer` instead of being run; None runs them again."""
    _state["launched"] = observer


def _first_config(tuner: Any, *args: Any, **kwargs: Any) -> Any:
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        several = len(tuner.configs) > 1
        config = (tuner.prune_configs(kwargs) if several else tuner.configs)[0]
        full = {**tuner.nargs, **kwargs, **config.all_kwargs()}
        if several:
            tuner.pre_hook(full, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(full)
        tuner.best_config = config
        return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
    finally:
        tuner.nargs = None
