"""What people call: `evolve` and `open`. The magics are these two with other spelling."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import MisuseError, NoSuchRunError
from workbench.notebook.session import SESSION, open_store


def evolve(
    op: Any,
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    auto: bool = False,
    wait: bool = False,
    proposer: str | None = None,
    model: str | None = None,
    tokens: int | None = None,
    money: float | None = None,
    lanes: int | None = None,
    target: str | None = None,
    precision: str = "match",
    name: str | None = None,
    store: Any = None,
    seed: int = 0,
    device: str = "auto",
    accept_degenerate: bool = False,
) -> Any:
    """Starts a search for a faster kernel of `op` and returns at once.

    >>> run = workbench.evolve(torch.softmax, x, -1, steps=12, auto=True)   # doctest: +SKIP
    >>> run.wait().best                                                     # doctest: +SKIP

    Args:
        op: a function, or an `nn.Module`, which is taken with its parameters.
        inputs: what to call it with, in order; `kwargs` are its keyword arguments.
        steps: evaluations at most; `seconds`: wall time at most.
        auto: run on by itself; else it judges one variant and waits for ``.step()``.
        wait: block until the run has ended (implies `auto`); an interrupt pauses it.
        proposer: who writes: ``experts``, ``llm`` or ``experts,llm``; the experts by default, and the models too if any are named.
        model: language models to ask, with commas, at OPENAI_BASE_URL with OPENAI_API_KEY.
        tokens: of the models at most, prompts included; `money`: USD for them at most.
        lanes: candidates on their way at once; one by default, three beside models.
        target: such as ``cuda:80``; the GPU that is here, else ``cuda:90``.
        precision: ``match`` the reference, or allow ``tf32`` or ``half``.
        store: where events are kept: a folder, a URL, or a store; ``.workbench/`` beside the notebook by default.
        seed: of the search.
        device: where candidates run: ``auto``, ``cuda`` or ``cpu``.
        accept_degenerate: search even if the judge finds that it can't tell bad answers from good ones on these inputs.

    Returns:
        The `Evolution`.

    Raises:
        CaptureError: the op can't become a Task; one line that says why.
        MisuseError: the arguments don't go together, or no model can be reached; one line with the mend.
    """
    from workbench.capture import capture_call
    from workbench.evolution import choose_proposers

    proposers = choose_proposers(proposer, model, tokens=tokens, money=money)
    captured = capture_call(op, inputs, dict(kwargs or {}), name=name, target=target, precision=precision)  # type: ignore[arg-type]
    evolution = begin(
        captured,
        steps=steps,
        seconds=seconds,
        tokens=tokens,
        money=money,
        auto=auto or wait,
        proposers=proposers,
        lanes=lanes,
        store=store,
        seed=seed,
        device=device,
        cell_source=_source_of(op),
        accept_degenerate=accept_degenerate,
    )
    return evolution.wait() if wait else evolution


def open(run: str | None = None, *, store: Any = None) -> Any:
    """A run from the store, rebuilt; the latest if none is named. ``.resume()`` goes on where it ended.

    Args:
        run: its id, the beginning of its id, or the id of a run of this kernel.

    Raises:
        NoSuchRunError: names the runs that there are.
    """
    if run is not None and run in SESSION.runs:
        SESSION.current_id = run
        return SESSION.runs[run]
    from workbench import evolution

    kept = open_store(store)
    runs = kept.runs()
    if not runs:
        raise NoSuchRunError(f"{kept.place} holds no runs yet: start one with %%evolve_kernel or workbench.evolve")
    if run is None:
        found = runs[0].id
    else:
        try:
            found = kept.run(run).id
        except NoSuchRunError as error:
            some = ", ".join(summary.id for summary in runs[:5]) + (", …" if len(runs) > 5 else "")
            raise NoSuchRunError(f"{error}; there is {some}" if some not in str(error) else str(error)) from None
    if found in SESSION.runs:
        SESSION.current_id = found
        return SESSION.runs[found]
    opened = evolution.open_run(kept, found)
    SESSION.add(opened)
    _watch_displays(opened)
    _make_board_ready(opened)
    return opened


def begin(
    captured: Any,
    *,
    steps: int | None,
    seconds: float | None,
    auto: bool,
    tokens: int | None = None,
    money: float | None = None,
    proposers: Sequence[str] = ("experts",),
    lanes: int | None = None,
    store: Any = None,
    seed: int = 0,
    device: str = "auto",
    cell: str = "",
    cell_source: str = "",
    accept_degenerate: bool = False,
) -> Any:
    """Starts the run of a captured op. An earlier run of the same cell is stopped, and its elites are judged again first.

    Args:
        proposers: names as `evolution.choose_proposers` gives them. It is asked before the op is captured, so that a misspelled option
            costs no run of the person's cell.

    Raises:
        MisuseError: a cap that nothing fits under, or no lanes.
    """
    from workbench import evolution
    from workbench.brief import Budget

    if steps is not None and steps < 1:
        raise MisuseError(f"steps is {steps}: give at least 1")
    if seconds is not None and not seconds > 0:
        raise MisuseError(f"seconds is {seconds}: give more than 0")
    if money is not None and not money > 0:
        raise MisuseError(f"money is {money}: give more than 0")
    if lanes is not None and lanes < 1:
        raise MisuseError(f"lanes is {lanes}: give at least 1")
    started = evolution.start(
        captured,
        budget=Budget(evaluations=steps, seconds=seconds, tokens=tokens, money=money),
        proposers=proposers,
        lanes=lanes,
        store=open_store(store),
        seed=seed,
        device=device,
        auto=auto,
        cell=cell,
        cell_source=cell_source,
        accept_degenerate=accept_degenerate,
    )
    SESSION.add(started)
    _watch_displays(started)
    return started


def _source_of(op: Any) -> str:
    """The op's own text, for the diff against it; empty where it has none."""
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(op) if callable(op) else op))
        ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    return text


def _make_board_ready(evolution: Any) -> None:
    """In a notebook, what the board shows first belongs to opening a run."""
    import sys

    if "IPython" in sys.modules:
        from workbench.board.shown import make_ready

        make_ready(evolution)


def _watch_displays(evolution: Any) -> None:
    """In a notebook, an Evolution shows itself as its static output and its board."""
    import sys

    if "IPython" in sys.modules:
        from workbench.notebook.display import register

        register(type(evolution))
