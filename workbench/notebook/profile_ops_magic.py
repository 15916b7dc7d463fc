"""``%%profile_ops`` on a cell: a table of its ops, and buttons that start a search."""

from __future__ import annotations

import shlex

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from workbench.errors import MisuseError

_OPTIONS = MagicArgumentParser("%%profile_ops")
_OPTIONS.add_argument(
    "--target", metavar="T", help="what floors are for: cuda:90, cuda:80, hip:gfx942 (default: the GPU here, else cuda:90)"
)
_OPTIONS.add_argument("--out", metavar="VAR", help="the variable that gets the profile")


@magics_class
class ProfileMagics(Magics):  # type: ignore[misc]
    """The one other magic of the workbench."""

    @no_var_expand  # type: ignore[untyped-decorator]
    @cell_magic  # type: ignore[untyped-decorator]
    def profile_ops(self, line: str, cell: str) -> None:
        """Run a cell and show its ops by what they would gain at their floor, with a button that starts a search from each.

        Options: ``--target T`` (what floors are for), ``--out VAR`` (the variable that gets the profile). Afterwards
        ``workbench.evolve_profiled(1)`` starts a search from the first op of the table.
        """
        __tracebackhide__ = True
        from workbench.notebook.profile_ops import panel, profile_code

        try:
            options = _OPTIONS.parse_args(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"%%profile_ops {line}: {error}") from None
        if options.out is not None and not options.out.isidentifier():
            raise UsageError(f"--out {options.out}: not a name for a variable")
        try:
            # An empty line in place of the magic's own: lines are then numbered as the cell shows them.
            profile = profile_code("\n" + self.shell.transform_cell(cell), self.shell.user_ns, target=options.target)
        except SyntaxError as error:
            if not str(error.filename).startswith("<workbench-cell"):
                raise
            raise MisuseError(f"the cell is not Python: line {error.lineno or 0}: {error.msg}") from None
        if profile.shown is not None:
            display(profile.shown)
        display(profile)
        if options.out is not None:
            self.shell.user_ns[options.out] = profile
        buttons = panel(profile) if getattr(self.shell, "kernel", None) is not None else None
        if buttons is not None:
            display(buttons)
