"""From what a model sent to a module that can be judged, or one line that says what is wrong with it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from workbench.proposers.llm.diffs import DiffError, apply_blocks, has_blocks, read_blocks
from workbench.proposers.llm.module import Module, add_missing_imports, examine, give_name

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.S | re.I)
_UNDELIMITED_THINKING = re.compile(r"^.*?</(think|thinking|reasoning)>", re.S | re.I)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+.#-]*)[^`\n]*$")
_NOT_CODE = {"diff", "patch", "bash", "sh", "shell", "console", "json", "text", "txt", "markdown", "md", "toml", "yaml", "output", "log"}
_PLAN = re.compile(r"^[\s>*_#-]*plan[\s*_]*:[\s*_]*(.*)$", re.I)
_CITES = re.compile(r"^[\s>*_#-]*(?:cites?|cited|citations)[\s*_]*:[\s*_]*(.*)$", re.I | re.M)
_CODE_START = re.compile(r"^(import |from \w|@triton|def |class |TUNE\b|CUDA\b)")
_ODD = str.maketrans({"\u00a0": " ", "\u200b": None, "\ufeff": None, "\u2060": None})
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "−": "-"})


@dataclass(frozen=True)
class Wanted:
    """What the answer has to be.

    Attributes:
        entry: the name that the module must define.
        parameters: the reference's arguments in order; None where they need not be compared (a model).
        parent: the source that search/replace blocks apply to; empty where there is none.
        citable: ids of the experts and cards that were shown.
    """

    entry: str
    parameters: tuple[str, ...] | None = None
    parent: str = ""
    citable: Collection[str] = ()


@dataclass(frozen=True)
class Reply:
    """What could be read. Either `source` is a module worth judging, or `problem` says in one line why there is none.

    `mended` lists what was put right without asking, such as ``added: import torch``.
    """

    source: str = ""
    plan: str = ""
    cites: tuple[str, ...] = ()
    backend: str = "triton"
    problem: str = ""
    mended: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Block:
    language: str
    text: str
    closed: bool


def parse(text: str, wanted: Wanted, *, finish: str = "stop") -> Reply:
    """Reads a model's answer.

    Args:
        finish: the endpoint's reason for the end of the answer; ``length`` where it was cut at the cap on tokens.

    >>> reply = parse("Plan: nothing yet.", Wanted("softmax"))
    >>> reply.problem, reply.plan
    ('the reply holds no code: give one fenced Python module', 'nothing yet.')
    """
    text = _normalise(text)
    blocks = _blocks(text)
    plan, cites = _plan(text), _cites(text, wanted.citable)
    reply = _from_diff(text, wanted) if has_blocks(text) else None
    if reply is None or reply.problem:
        whole = _from_modules(text, blocks, wanted, finish)
        # A diff that fails may come with the whole module; without one, what is wrong is the diff.
        if reply is None or not whole.problem:
            reply = whole
    return Reply(reply.source, plan, cites, reply.backend, reply.problem, reply.mended)


def _normalise(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_ODD)
    text = _THINKING.sub("", text)
    if not re.search(r"<(think|thinking|reasoning)>", text, re.I):  # some servers keep the end of the thinking, but not its start
        text = _UNDELIMITED_THINKING.sub("", text)
    return _unwrap_json(text.strip("\n"))


def _unwrap_json(text: str) -> str:
    """The answer inside of a JSON object, where that is what was sent."""
    inner = re.sub(r"^```json\n(.*)\n```$", r"\1", text.strip(), flags=re.S)
    if not inner.startswith("{"):
        return text
    try:
        data = json.loads(inner)
    except ValueError:
        return text
    code = next((data[key] for key in ("code", "source", "module", "answer") if isinstance(data.get(key), str)), None)
    if code is None:
        return text
    cites = data.get("cites")
    cited = ", ".join(map(str, cites)) if isinstance(cites, list) else cites or ""
    body = code if "```" in code else f"```python\n{code}\n```"
    return f"Plan: {data.get('plan', '')}\nCites: {cited}\n{body}"


def _blocks(text: str) -> list[_Block]:
    """The fenced blocks of a Markdown text, the last one also where it is never closed."""
    blocks: list[_Block] = []
    fence, language = "", ""
    lines: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            fence, language, lines = found[1], found[2].lower(), []
        elif fence and found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2]:
            blocks.append(_Block(language, "\n".join(lines), True))
            fence = ""
        elif fence:
            lines.append(line)
    if fence and lines:
        blocks.append(_Block(language, "\n".join(lines), False))
    return blocks


def _plan(text: str) -> str:
    """The stated plan; else the first sentence or two of prose before the code."""
    outside = re.split(r"^ {0,3}(?:```|~~~|<{5,9} ?SEARCH)", text, maxsplit=1, flags=re.M)[0]
    lines = outside.split("\n")
    for number, line in enumerate(lines):
        if found := _PLAN.match(line):
            rest: list[str] = []
            for more in lines[number + 1 :]:
                if (not more.strip() and (rest or found[1].strip())) or _CITES.match(more):
                    break
                rest.append(more.strip())
            return _short(" ".join([found[1].strip(), *rest]))
    prose = [line.strip() for line in lines if line.strip() and not _CITES.match(line) and not _CODE_START.match(line)]
    return _short(" ".join(prose))


def _short(text: str, most: int = 300) -> str:
    text = " ".join(text.strip(" *_#").split())
    if len(text) <= most:
        return text
    cut = text[:most]
    stop = max(cut.rfind(". "), cut.rfind("; "))
    return cut[: stop + 1] if stop > most // 3 else cut[: cut.rfind(" ")] + " …"


def _cites(text: str, citable: Collection[str]) -> tuple[str, ...]:
    found: list[str] = []
    for line in _CITES.findall(text):
        for word in re.split(r"[\s,;`\[\]()]+", line):
            word = word.strip(".*_'\"")
            if word in citable and word not in found:
                found.append(word)
    return tuple(found)


def _from_diff(text: str, wanted: Wanted) -> Reply:
    if not wanted.parent:
        return Reply(problem="search/replace blocks, but there is no parent to apply them to: give the whole module")
    try:
        source = apply_blocks(wanted.parent, read_blocks(text))
    except DiffError as error:
        return Reply(problem=str(error))
    return _finish(examine(source), wanted, [])


def _from_modules(text: str, blocks: list[_Block], wanted: Wanted, finish: str) -> Reply:
    """The best module among the fenced blocks; without a fence, the part of the text that is Python."""
    code = [block for block in blocks if block.language not in _NOT_CODE]
    cut = finish == "length" and (not blocks or not blocks[-1].closed)
    if not code:
        if any(block.language in ("diff", "patch") for block in blocks):
            return Reply(problem="a unified diff can't be applied: give search/replace blocks or the whole module")
        bare = _bare_module(text)
        if bare is None:
            return Reply(
                problem="the reply was cut off before any code" if cut else "the reply holds no code: give one fenced Python module"
            )
        code, notes = [_Block("python", bare, True)], ["taken without a fence"]
    else:
        notes = []
    modules = [examine(_clean(block.text)) for block in code]
    if len(code) > 1:
        joined = examine("\n\n".join(module.source for module in modules if not module.error))
        if wanted.entry in joined.names and not any(wanted.entry in module.names and module.has_kernel for module in modules):
            modules.append(joined)  # kernel and launcher came in blocks of their own
            notes.append("joined several blocks")
    outer = _outermost(text) if any(module.error for module in modules) and not cut else None
    if outer is not None and outer.error == "":
        modules.append(outer)  # a fence inside of a docstring had split the module
    best = max(enumerate(modules), key=lambda item: (_worth(item[1], wanted), item[0]))[1]
    if cut and best is modules[len(code) - 1]:
        return Reply(
            problem=f"the reply was cut off after {len(best.source.splitlines())} lines of code: write a shorter module and less prose"
        )
    if not code[-1].closed and best.error and best is modules[len(code) - 1]:
        return Reply(problem=f"the reply ends in the middle of the module: {best.error}")
    return _finish(best, wanted, notes)


def _worth(module: Module, wanted: Wanted) -> tuple[bool, bool, bool, int]:
    # Models often end with the final version, so the last of equals is taken; where none is usable, the longest is what was meant.
    usable = not module.error and wanted.entry in module.names
    return usable, usable and module.has_kernel, not module.error, 0 if usable else len(module.source)


def _clean(text: str) -> str:
    """A block's text without what editors and chats put into code."""
    source = text.strip("\n")
    if not examine(source).error:
        return source
    lines = source.split("\n")
    if lines and lines[0].strip().lower() in ("python", "py", "triton"):
        lines = lines[1:]
    prompts = [line for line in lines if line.strip()]
    if prompts and all(line.startswith((">>> ", ">>>", "... ", "...")) for line in prompts):
        lines = [line[4:] for line in lines]
    numbered = [re.match(r"^\s*\d+[:|]\s?(.*)$", line) for line in lines]
    if lines and all(numbered):
        lines = [found[1] for found in numbered if found]
    for attempt in (
        "\n".join(lines),
        "\n".join(line.expandtabs(4) for line in lines),
        "\n".join(line for line in lines if not re.match(r"^\s*(`{3,}.*|\*\*.*\*\*:?|#{2,} .*|---+|\.\.\.)\s*$", line)),
        html.unescape("\n".join(lines)),
        "\n".join(lines).translate(_QUOTES),
        _dedent(lines),
    ):
        if not examine(attempt).error:
            return attempt
    return "\n".join(lines)


def _dedent(lines: list[str]) -> str:
    columns = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[columns:] for line in lines)


def _outermost(text: str) -> Module | None:
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if re.match(r"^ {0,3}(```|~~~)", line)]
    return examine("\n".join(lines[fences[0] + 1 : fences[-1]])) if len(fences) > 2 else None


def _bare_module(text: str) -> str | None:
    """Python that stands in the text without a fence: from its first line of code to the last line that still parses."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if _CODE_START.match(line)), None)
    if start is None:
        return None
    lines = lines[start:]
    for end in range(len(lines), max(0, len(lines) - 60), -1):
        module = examine("\n".join(lines[:end]))
        if not module.error and module.names:
            return module.source
    return "\n".join(lines)


def _finish(module: Module, wanted: Wanted, notes: list[str]) -> Reply:
    """The last look at the chosen module: mend what is plain, name what is not."""
    if module.error:
        return Reply(problem=module.error)
    module, renamed = give_name(module, wanted.entry, wanted.parameters)
    module, added = add_missing_imports(module)
    problem = module.problem(wanted.entry, wanted.parameters)
    if problem:
        return Reply(problem=problem)
    return Reply(source=module.source.rstrip() + "\n", backend=module.backend, mended=(*notes, *renamed, *added))
