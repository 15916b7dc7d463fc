"""``%%profile_ops`` and ``workbench profile``: which ops a piece of code runs, what each costs, and what it could gain.

>>> profile = profile_code(source, namespace)      # doctest: +SKIP
>>> print(profile)                                 # doctest: +SKIP
>>> workbench.evolve_profiled(1)                   # doctest: +SKIP
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import html
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError, WorkbenchError
from workbench.notebook.profile_ops_regions import Region, as_call, regions
from workbench.notebook.profile_ops_watch import Watch
from workbench.target import Target, detect_target, get_target

ROWS = 12
_LAST: list[Profile] = []


@dataclass(frozen=True)
class Profile:
    """The ops of one piece of code, those that would gain most first.

    Attributes:
        measured: whether times are a GPU's; else they are modelled for `target`, and the host's own stand beside them.
        wall_us: of the whole code.
        calls: of PyTorch's API that computed something.
        shown: the value of the code's last line.
        notes: sentences for people.
        hint: how to start a search.
    """

    regions: tuple[Region, ...]
    target: Target
    measured: bool
    wall_us: float
    calls: int
    shown: Any = None
    notes: tuple[str, ...] = ()
    hint: str = "workbench.evolve_profiled(1)"

    def __getitem__(self, number: int) -> Region:
        """The op with that number in the table, counted from 1."""
        if not 1 <= number <= len(self.regions):
            most = f"choose 1 to {len(self.regions)}" if self.regions else "it found none"
            raise MisuseError(f"the profile has no op {number}: {most}")
        return self.regions[number - 1]

    def evolve(self, number: int = 1, **options: Any) -> Any:
        """Starts a search from an op with the inputs that it had, like `workbench.evolve` with the same options.

        Raises:
            MisuseError: there is no such op, or it can't be taken by itself.
        """
        from workbench.notebook.api import evolve

        region = self[number]
        op, args, kwargs = as_call(region)
        options.setdefault("name", _label(region, op))
        return evolve(op, *args, kwargs=kwargs, **options)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "measured": self.measured, "target": self.target.name, "gpu": self.target.gpu, "wall_us": self.wall_us, "calls": self.calls,
            "ops": [region.as_data(number) for number, region in enumerate(self.regions, 1)], "notes": list(self.notes),
        }  # fmt: skip

    def head(self) -> str:
        """What was watched, in one line."""
        if not self.regions:
            return "No op of PyTorch ran here: profile code that calls one on tensors."
        kind = "measured on this GPU" if self.measured else f"modelled for {self.target.gpu}; host times are this machine's own"
        count = len(self.regions)
        return f"{count} op{'s' if count > 1 else ''} in {self.calls} call{'s' if self.calls > 1 else ''}; times are {kind}"

    def rows(self) -> list[tuple[str, ...]]:
        """The table's cells as text."""
        return [
            (
                str(number), region.name, region.where, str(region.runs), _ops(region), us(region.time_us), f"{region.share:.0%}",
                us(region.floor_us), f"{region.headroom:.1f}×", f"{region.gain:.0%}",
                *(() if self.measured else (us(region.host_us),)),
            )
            for number, region in enumerate(self.regions[:ROWS], 1)
        ]  # fmt: skip

    def columns(self) -> tuple[str, ...]:
        """Their names."""
        time = "time" if self.measured else "modelled"
        return ("#", "op", "where", "runs", "calls", time, "share", "floor", "headroom", "gain", *(() if self.measured else ("host",)))

    def __str__(self) -> str:
        lines = [self.head()]
        if self.regions:
            cells = [self.columns(), *([cell if len(cell) <= 44 else cell[:43] + "…" for cell in row] for row in self.rows())]
            widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
            lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
            lines += self._below()
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(self.head())}</p>"]
        if self.regions:
            head = "".join(f'<th scope="col">{name}</th>' for name in self.columns())
            body = "".join(
                f'<tr><th scope="row">{html.escape(row[0])}</th>{"".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])}</tr>'
                for row in self.rows()
            )
            caption = "Gain: how much of the ops' whole time would be saved if this op were one kernel at its floor"
            parts.append(f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<p>{html.escape(line)}</p>" for line in (*self._below(), *self.notes)]
        return "".join(parts)

    def _below(self) -> list[str]:
        lines = [f"{len(self.regions) - ROWS} more ops gain less"] if len(self.regions) > ROWS else []
        return [*lines, f"Make one faster: {self.hint}"] if self.regions else lines


def profile_code(
    source: str,
    namespace: dict[str, Any],
    *,
    filename: str = "",
    target: str | None = None,
    run: Callable[..., Any] | None = None,
) -> Profile:
    """Runs code once and watches its ops. What the code raises comes through.

    Args:
        source: Python text.
        namespace: where it runs.
        filename: of the text; by default a name of its own, under which its lines can be read.
        target: what floors, and without a GPU times, are for; this machine's GPU by default.
        run: runs the whole in the namespace; by default it is executed, and the value of the last line kept.
    """
    __tracebackhide__ = True
    if not filename:
        filename = f"<workbench-cell-{hashlib.sha256(source.encode()).hexdigest()[:12]}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    tree = ast.parse(source, filename)
    last = tree.body.pop() if run is None and tree.body and isinstance(tree.body[-1], ast.Expr) else None
    execute = run or exec
    shown = None
    watch = Watch()
    with watch.watching():
        execute(compile(tree, filename, "exec", dont_inherit=True), namespace)
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), filename, "eval", dont_inherit=True)
            shown = eval(code, namespace)  # noqa: S307 - the person's own code, as any cell
    return finish(watch, target, shown)


def profile_call(function: Callable[..., Any], *args: Any, target: str | None = None, warm: bool = True, **kwargs: Any) -> Profile:
    """Calls a function and watches its ops; once before, unwatched, so that what happens only once is not counted."""
    if warm:
        function(*args, **kwargs)
    watch = Watch()
    with watch.watching():
        shown = function(*args, **kwargs)
    return finish(watch, target, shown)


def finish(watch: Watch, target: str | None, shown: Any) -> Profile:
    """The profile of what was watched; it becomes the one that `evolve_profiled` means."""
    calls = [call for instance in watch.instances for call in instance.calls if not call.makes]
    measured = bool(calls) and any(call.events is not None for call in calls)
    card = get_target(target or detect_target())
    notes = []
    if measured and any(call.events is None for call in calls):
        notes.append("Calls on tensors outside the GPU are not in these times.")
    made = Profile(regions(watch.instances, card, measured=measured), card, measured, watch.wall_us, len(calls), shown, tuple(notes))
    _LAST[:] = [made]
    return made


def evolve_profiled(number: int = 1, **options: Any) -> Any:
    """Starts a search from an op of the last profile, with the inputs that it had there.

    Args:
        number: of the op in the table, from 1.
        options: as `workbench.evolve` takes them.

    Raises:
        MisuseError: nothing was profiled, there is no such op, or it can't be taken by itself.
    """
    if not _LAST:
        raise MisuseError("nothing is profiled yet: put %%profile_ops on top of a cell")
    return _LAST[0].evolve(number, **options)


def profile_file(path: Path, *, target: str | None = None) -> Profile:
    """Profiles a script, or the call of a reference file.

    Raises:
        MisuseError: the file can't be read or is no Python.
    """
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source, str(path))
    except OSError as error:
        raise MisuseError(f"{path}: {error.strerror}: give the path of a script or a reference") from None
    except (UnicodeDecodeError, SyntaxError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else "it is no text"
        raise MisuseError(f"{path} is not Python: {what}") from None
    with _as_script(path):
        found = _profile_text(path, source, tree, target)
    is_reference = any(isinstance(node, ast.FunctionDef) and node.name == "get_inputs" for node in tree.body)
    return replace(
        found,
        hint=f"python -m workbench evolve {path}" if is_reference else "%%profile_ops in a notebook, then workbench.evolve_profiled(1)",
    )


@contextlib.contextmanager
def _as_script(path: Path) -> Iterator[None]:
    """Its folder comes first on the path and its name first in the arguments, as where Python runs it."""
    before = sys.argv[:], sys.path[:]
    sys.argv[:] = [str(path)]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv[:], sys.path[:] = before


def _run_to_its_end(code: Any, space: dict[str, Any]) -> None:
    """A script may end itself; what it ran until then was watched."""
    with contextlib.suppress(SystemExit):
        exec(code, space)


def _profile_text(path: Path, source: str, tree: ast.Module, target: str | None) -> Profile:
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(path), "__builtins__": __builtins__}
    if "get_inputs" not in functions:
        return profile_code(source, space, filename=str(path), target=target, run=_run_to_its_end)
    space["__name__"] = "workbench_profiled"
    exec(compile(source, str(path), "exec"), space)
    given = space["get_inputs"]()
    inputs = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if "Model" in classes:
        initial = space.get("get_init_inputs", list)()
        model = space["Model"](*initial)
        return profile_call(model, *inputs, target=target)
    ops = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith(("get_", "_"))]
    if not ops:
        raise MisuseError(f"{path} has get_inputs but no function to give them to: define one")
    return profile_call(space[ops[-1]], *inputs, target=target)


def panel(profile: Profile) -> Any:
    """Buttons that start a search, for a notebook; None where there is nothing to start or no widgets."""
    try:
        import ipywidgets
    except ImportError:
        return None
    if not profile.regions:
        return None
    status = ipywidgets.Label("")
    box = ipywidgets.VBox([])

    def start(number: int, button: Any) -> None:
        button.disabled = True
        try:
            run = profile.evolve(number)
        except WorkbenchError as error:
            button.disabled = False
            status.value = str(error)
            return
        status.value = f"{run.id} is started. It is also there as %evolve_kernel open {run.id}"
        board = _board(run)
        if board is not None:
            box.children = (*box.children[:2], board)

    buttons = []
    for number, region in enumerate(profile.regions[:5], 1):
        text = f"Evolve {number}: {region.name}"
        button = ipywidgets.Button(description=text[:40], tooltip=f"Search for a faster kernel for {region.name}")
        button.layout.width = "auto"
        button.on_click(lambda pressed, number=number: start(number, pressed))
        buttons.append(button)
    rows = ipywidgets.HBox(buttons)
    rows.layout.flex_flow = "row wrap"
    box.children = (rows, status)
    return box


def _board(run: Any) -> Any:
    """The run's board, if it can be had here."""
    with contextlib.suppress(Exception):
        from workbench.notebook.display import make_board

        return make_board(run)
    return None


def _label(region: Region, op: Any) -> str:
    name = getattr(op, "__name__", "") or type(op).__name__
    return name if name.isidentifier() and name not in ("partial", "forward") else "".join(
        character if character.isalnum() else "_" for character in region.name
    ).strip("_") or "op"  # fmt: skip


def _ops(region: Region) -> str:
    return ", ".join(name + (f" ×{count}" if count > 1 else "") for name, count in region.ops[:5]) + (
        ", …" if len(region.ops) > 5 else ""
    )  # fmt: skip


def us(value: float) -> str:
    """A time for people."""
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.2f} ms" if value < 1e6 else f"{value / 1e6:.2f} s"
