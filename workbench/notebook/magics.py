"""``%%evolve_kernel`` on a cell, ``%evolve_kernel`` for everything after.

Every misuse is one line and fails the cell; what the person's own op raises comes through as it is; a candidate's failure is data.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from workbench.errors import MisuseError
from workbench.notebook import views
from workbench.notebook.api import begin
from workbench.notebook.api import open as open_run
from workbench.notebook.completion import Completer
from workbench.notebook.display import show
from workbench.notebook.profile_ops_magic import ProfileMagics
from workbench.notebook.session import SESSION, open_store
from workbench.notebook.warming import WarmUp

VERBS = {
    "status": "the run as it stands",
    "runs": "what lies in the store",
    "step": "[N]: judge one more variant, or N",
    "auto": "run on by itself",
    "pause": "no new candidates; running ones finish",
    "resume": "go on after a pause",
    "stop": "finish the running ones, then end",
    "cancel": "kill the running ones and end",
    "show": "ID: one variant: verdict, figures, code",
    "diff": "ID [ID]: what changed, against the parent or another variant",
    "hint": "TEXT: say it to the proposers",
    "ban": "TEXT: no more variants with this idea",
    "pin": "ID: keep it as a parent",
    "branch": "ID: a new island from it",
    "accept": "ID [--replace] [--to FILE] [--consent]: judge it once more, then write it as plain code",
    "open": "RUN: an earlier run, rebuilt from the store",
}
TAKES_ID = ("show", "diff", "pin", "branch", "accept")


_CELL = MagicArgumentParser("%%evolve_kernel")
for _name, _kind, _metavar, _help in (
    ("--steps", int, "N", "evaluations at most"),
    ("--seconds", float, "S", "wall time at most"),
    ("--tokens", int, "T", "tokens of the models at most, prompts included"),
    ("--money", float, "USD", "USD for the models at most"),
    ("--model", str, "A,B", "language models to ask, at OPENAI_BASE_URL with OPENAI_API_KEY"),
    ("--proposer", str, "NAME", "who writes: experts, llm or experts,llm (default: the experts, and models if any)"),
    ("--target", str, "T", "what to compile for: cuda:90, cuda:80, hip:gfx942 (default: the GPU here, else cuda:90)"),
    ("--seed", int, "N", "of the search"),
    ("--out", str, "VAR", "the variable that gets the Evolution"),
    ("--inputs", str, "NAME", "a variable or function that gives the inputs, in place of the cell's last call"),
    ("--name", str, "NAME", "what to call the op"),
):
    _CELL.add_argument(_name, type=_kind, metavar=_metavar, help=_help)
_CELL.add_argument("--auto", action="store_true", help="run on; else it waits for steps")
_CELL.add_argument("--wait", action="store_true", help="run on and block until the end; Interrupt pauses")
_CELL.add_argument("--accept-degenerate", action="store_true", help="search even where bad answers can't be told from good ones")
_CELL.set_defaults(seed=0)


@magics_class
class EvolveMagics(Magics):  # type: ignore[misc]
    """The magics of the workbench."""

    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def evolve_kernel(self, line: str, cell: str | None = None) -> Any:
        """Search for a faster kernel of the op that a cell defines and calls.

        As ``%%evolve_kernel [options]`` on top of a cell it starts a run. As ``%evolve_kernel VERB`` it speaks to the current run.
        """
        __tracebackhide__ = True
        if cell is None:
            return self._line(line)
        return self._cell(line, cell)

    def _cell(self, line: str, source: str) -> Any:
        __tracebackhide__ = True
        from workbench.evolution import choose_proposers

        options = _parse(_CELL, line)
        proposers = choose_proposers(options.proposer, options.model, tokens=options.tokens, money=options.money)
        if options.out is not None and not options.out.isidentifier():
            raise UsageError(f"--out {options.out}: not a name for a variable")
        if options.inputs is not None and not options.inputs.isidentifier():
            raise UsageError(f"--inputs {options.inputs}: give the name of a variable or function, and define it before")
        captured = self._capture(source, options)
        evolution = begin(
            captured,
            steps=options.steps,
            seconds=options.seconds,
            tokens=options.tokens,
            money=options.money,
            auto=options.auto or options.wait,
            proposers=proposers,
            seed=options.seed,
            accept_degenerate=options.accept_degenerate,
            cell=_cell_id(self.shell) or f"op:{captured.task.name}",
            cell_source=_whole_cell(self.shell) or source,
        )
        if options.out is not None:
            self.shell.user_ns[options.out] = evolution
        in_notebook = getattr(self.shell, "kernel", None) is not None
        if options.wait and not in_notebook:
            evolution.wait()  # a terminal can't refresh what it has printed, so it prints the end
        live = show(evolution)
        if options.wait and in_notebook:
            evolution.wait()
            if live is not None:
                live.flush()
        return evolution

    def _capture(self, source: str, options: Any) -> Any:
        """Runs the cell as it would run without the magic, and captures its op."""
        __tracebackhide__ = True
        from workbench.capture import capture_cell

        try:
            # An empty line in place of the magic's own: lines are then numbered as the cell shows them.
            captured = capture_cell("\n" + source, self.shell.user_ns, inputs=options.inputs, name=options.name, target=options.target)
        except SyntaxError as error:
            if not str(error.filename).startswith("<workbench-cell"):
                raise
            raise MisuseError(f"the cell is not Python: line {error.lineno or 0}: {error.msg}") from None
        if captured.shown is not None:
            display(captured.shown)
        return captured

    def _line(self, line: str) -> Any:
        __tracebackhide__ = True
        verb, _, rest = line.strip().partition(" ")
        if verb not in VERBS:
            said = f"{verb!r} is none of its verbs" if verb else "say what to do"
            raise UsageError(f"%evolve_kernel: {said}: {', '.join(VERBS)}")
        return _LINE[verb](self, rest.strip())

    def _status(self, rest: str) -> Any:
        _nothing_more("status", rest)
        return views.Run(SESSION.current)

    def _runs(self, rest: str) -> Any:
        _nothing_more("runs", rest)
        return views.Runs([run.as_seen() for run in open_store().runs()], frozenset(SESSION.runs))

    def _step(self, rest: str) -> Any:
        if rest and not rest.isdigit():
            raise UsageError(f"%evolve_kernel step {rest}: give a number of variants, such as step 4")
        count = int(rest or 1)
        SESSION.current.step(count)
        return views.Line(f"{SESSION.current.id}: judging {count} more")

    def _open(self, rest: str) -> Any:
        evolution = open_run(rest or None)
        show(evolution)
        return evolution

    def _show(self, rest: str) -> Any:
        name = _one("show", rest)
        return views.variant(SESSION.current, name)

    def _diff(self, rest: str) -> Any:
        names = rest.split()
        if not 1 <= len(names) <= 2:
            raise UsageError("%evolve_kernel diff: give the id of a variant, or two")
        return views.diff(SESSION.current, *names)

    def _accept(self, rest: str) -> Any:
        from workbench.notebook.accept import accept

        options = _accept_options(rest)
        if options.replace and options.to:
            raise UsageError("%evolve_kernel accept: --replace or --to FILE, not both")
        place = options.to or ("this cell" if options.replace else "a cell below")
        accepted = accept(SESSION.current, options.id, consent=options.consent, to=options.to, place=place)
        if not options.to:
            # The idiom of %load: the command stays above the code as a comment, so that one sees where it came from.
            said = f"# %evolve_kernel accept {rest}\n" if options.replace else ""
            self.shell.set_next_input(said + accepted.code, replace=options.replace)
        return accepted


def _command(verb: str) -> Callable[[EvolveMagics, str], Any]:
    """A verb that takes nothing."""

    def act(magics: EvolveMagics, rest: str) -> Any:
        _nothing_more(verb, rest)
        getattr(SESSION.current, verb)()
        return views.Line(f"{SESSION.current.id}: {verb}")

    return act


def _saying(verb: str) -> Callable[[EvolveMagics, str], Any]:
    """A verb that takes text."""

    def act(magics: EvolveMagics, rest: str) -> Any:
        text = rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "'\"" else rest
        if not text:
            raise UsageError(f"%evolve_kernel {verb}: say it in words, such as: {verb} two rows per program")
        getattr(SESSION.current, verb)(text)
        return views.Line(f"{SESSION.current.id}: {verb}: {text}")

    return act


def _naming(verb: str) -> Callable[[EvolveMagics, str], Any]:
    """A verb that takes the id of a variant."""

    def act(magics: EvolveMagics, rest: str) -> Any:
        given = _one(verb, rest)
        name = views.resolve(SESSION.current, given)
        getattr(SESSION.current, verb)(name)
        return views.Line(f"{SESSION.current.id}: {verb} {name}")

    return act


_LINE: dict[str, Callable[[EvolveMagics, str], Any]] = {
    "status": EvolveMagics._status,
    "runs": EvolveMagics._runs,
    "step": EvolveMagics._step,
    "show": EvolveMagics._show,
    "diff": EvolveMagics._diff,
    "accept": EvolveMagics._accept,
    "open": EvolveMagics._open,
    **{verb: _command(verb) for verb in ("auto", "pause", "resume", "stop", "cancel")},
    **{verb: _saying(verb) for verb in ("hint", "ban")},
    **{verb: _naming(verb) for verb in ("pin", "branch")},
}

_VERBS_HELP = "\n".join(f"        {verb:<8} {text}" for verb, text in VERBS.items())
EvolveMagics.evolve_kernel.__doc__ += f"\n        Verbs (an ID may be ``best``):\n\n{_VERBS_HELP}\n\n{_CELL.format_help()}"

_ACCEPT = MagicArgumentParser("%evolve_kernel accept")
_ACCEPT.add_argument("id", metavar="ID", nargs="?")
_ACCEPT.add_argument("--replace", action="store_true")
_ACCEPT.add_argument("--to", metavar="FILE")
_ACCEPT.add_argument("--consent", action="store_true")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext workbench``: magics and completion. Silent, and the same when called again."""
    if getattr(shell, "_workbench_completer", None) is not None:
        return
    shell.register_magics(EvolveMagics, ProfileMagics)
    options = [name for action in _CELL._actions for name in action.option_strings]
    accept_options = [name for action in _ACCEPT._actions for name in action.option_strings]
    shell._workbench_completer = Completer(tuple(VERBS), TAKES_ID, tuple(options), tuple(accept_options))
    shell.Completer.custom_matchers.append(shell._workbench_completer.matcher)
    shell._workbench_warm_up = WarmUp(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext workbench``: takes magics and completion away; runs go on."""
    completer = getattr(shell, "_workbench_completer", None)
    if completer is None:
        return
    shell.Completer.custom_matchers.remove(completer.matcher)
    shell._workbench_warm_up.close()
    for kind in ("line", "cell"):
        for name in ("evolve_kernel", "profile_ops"):
            shell.magics_manager.magics[kind].pop(name, None)
    shell._workbench_completer = None


def _parse(parser: MagicArgumentParser, line: str) -> Any:
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{line}: {error}") from None


def _accept_options(rest: str) -> Any:
    """Which variant goes where. What is missing or unknown is answered with what there is."""
    try:
        options, unknown = _ACCEPT.parse_known_args(shlex.split(rest))
    except ValueError as error:
        raise UsageError(f"%evolve_kernel accept {rest}: {error}") from None
    if unknown:
        raise UsageError(f"%evolve_kernel accept: {unknown[0]!r} is none of what it takes: one id, --replace, --to FILE, --consent")
    if options.id is None:
        raise UsageError("%evolve_kernel accept what? give an id such as k3 or best (and --replace, --to FILE or --consent)")
    return options


def _one(verb: str, rest: str) -> str:
    names = rest.split()
    if len(names) != 1:
        raise UsageError(f"%evolve_kernel {verb}: give the id of one variant, such as {verb} best")
    return names[0]


def _nothing_more(verb: str, rest: str) -> None:
    if rest:
        raise UsageError(f"%evolve_kernel {verb} takes nothing more, but there is {rest!r}")


def _request(shell: Any) -> dict[str, Any]:
    """The front end's request to execute, empty outside a kernel."""
    return (shell.get_parent() if hasattr(shell, "get_parent") else None) or {}


def _cell_id(shell: Any) -> str:
    """The notebook cell that is being executed, as the front end names it; empty where it does not say."""
    return str((_request(shell).get("metadata") or {}).get("cellId") or "")


def _whole_cell(shell: Any) -> str:
    """The executing cell's text with its first line, as the notebook has it: what a replacement is compared with."""
    code = str((_request(shell).get("content") or {}).get("code") or "")
    return code if code.lstrip().startswith("%%evolve_kernel") else ""


__all__ = ["EvolveMagics", "load_ipython_extension", "unload_ipython_extension"]
