import pytest

from workbench.notebook.names import own_names, rename


def suffixed(source: str) -> str:
    return rename(source, {name: f"{name}_7" for name in own_names(source)})


def run(source: str) -> dict:
    namespace: dict = {}
    exec(compile(source, "<test>", "exec"), namespace)
    return namespace


def test_own_names_leaves_imports_out():
    source = "import math\nfrom math import exp as e\nA = 1\ndef f(): pass\nclass C: pass\nfor i in range(2): b = i\n"
    assert own_names(source) == ("A", "C", "b", "f", "i")


@pytest.mark.parametrize(
    ("source", "call", "expected"),
    [
        ("B = 2\ndef f(x, B=B):\n    return x * B\n", lambda m: m["f_7"](3), 6),
        ("B = 2\ndef f(x):\n    return dict(B=B)['B'] + x\n", lambda m: m["f_7"](3), 5),
        ("B = 2\ndef f(x):\n    B = x\n    return B\n", lambda m: (m["f_7"](3), m["B_7"]), (3, 2)),
        ("n = 0\ndef f():\n    global n\n    n += 1\n    return n\n", lambda m: (m["f_7"](), m["n_7"]), (1, 1)),
        ("n = 4\ndef f():\n    return f'{n:>{n}} n {{n}} {n!r}'\n", lambda m: m["f_7"](), "   4 n {n} 4"),
        ("n = 4\ndef f():\n    return f'{ {1: n}[1] }-{{n}}{n:0{n}}'\n", lambda m: m["f_7"](), "4-{n}0004"),
        ("n = [1, 2]\ndef f():\n    return [n for n in n]\n", lambda m: m["f_7"](), [1, 2]),
        ("class A:\n    B = 1\n    def g(self):\n        return B + self.B\nB = 5\n", lambda m: m["A_7"]().g(), 6),
        ("class A:\n    def __init__(self):\n        super().__init__()\n        self.A = A\n", lambda m: m["A_7"]().A.__name__, "A_7"),
        ("é = 2\ndef f(x): return 'ü' + str(é) + x\n", lambda m: m["f_7"]("b"), "ü2b"),
        ("def f(k): return k if k < 2 else f(k - 1) * k\n", lambda m: m["f_7"](4), 24),
        ("g = lambda x: x + h\nh = 3\n", lambda m: m["g_7"](1), 4),
        ("x = 1\ndef f():\n    def g(x):\n        return x\n    return g(2) + x\n", lambda m: m["f_7"](), 3),
        ("from __future__ import annotations\nT = int\ndef f(x: T) -> T: return x\n", lambda m: m["f_7"](3), 3),
    ],
)
def test_a_renamed_module_computes_the_same(source, call, expected):
    assert call(run(suffixed(source))) == expected


def test_comments_and_layout_stay():
    source = "# head\nB = 64  # B stays here\n\n\ndef f(\n    x,\n):\n    '''B in a docstring'''\n    return x.B + B  # end\n"
    assert suffixed(source) == source.replace("B = 64", "B_7 = 64").replace("def f", "def f_7").replace("+ B  #", "+ B_7  #")


def test_what_can_not_be_renamed_is_an_error():
    # The text of n stands in the output of {n=}, so exchanging it would change what the module does.
    with pytest.raises(ValueError, match="renamed"):
        suffixed("n = 4\ndef f():\n    return f'{n=}'\n")
