"""IPython never awaits what an ``async def`` magic returns: it would print a coroutine, and the cell would be green."""

from __future__ import annotations

import inspect

import pytest

from workbench.notebook.magics import EvolveMagics
from workbench.notebook.profile_ops_magic import ProfileMagics


@pytest.mark.parametrize("kind", [EvolveMagics, ProfileMagics])
def test_no_magic_is_a_coroutine(kind):
    named = {name for magics in kind.magics.values() for name in magics.values()}
    assert named
    for name in named:
        function = inspect.unwrap(getattr(kind, name))
        assert not inspect.iscoroutinefunction(function) and not inspect.isasyncgenfunction(function), name
