"""From what a person names (experts, llm, models) to the proposers of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping

from workbench.brief import Budget
from workbench.errors import MisuseError

NAMES = ("experts", "llm", "person")


def choose_proposers(
    proposer: str | None = None, model: str | None = None, *, tokens: int | None = None, money: float | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """The names that `start` takes. Without `proposer` the experts write, and the models too if any are named.

    >>> choose_proposers(model="gpt-5, gpt-5-mini", environ={"OPENAI_API_KEY": "…"})
    ('experts', 'llm:gpt-5,gpt-5-mini')

    Args:
        proposer: ``experts``, ``llm`` or ``person``, or several with commas.
        model: names of models with commas.
        tokens: the cap on tokens, to be checked alone; `money`: that on USD.
        environ: where key and endpoint are looked for.

    Raises:
        MisuseError: they don't go together, or there is no way to reach a model; one line with the mend.
    """
    environ = os.environ if environ is None else environ
    models = ",".join(dict.fromkeys(name.strip() for name in (model or "").split(",") if name.strip()))
    if model is not None and not models:
        raise MisuseError("--model: name a model, such as --model gpt-5-mini")
    given = [name.strip() for name in (proposer or "").split(",") if name.strip()]
    names = list(dict.fromkeys(given)) or ["experts", *(["llm"] if models else [])]
    for name in names:
        if name not in NAMES:
            raise MisuseError(f"no proposer {name!r}: there is {', '.join(NAMES)}")
    if "llm" in names and not models:
        raise MisuseError(f"--proposer {','.join(names)}: name a model, such as --model gpt-5-mini")
    if models and "llm" not in names:
        raise MisuseError(f"--model {models}: --proposer {','.join(names)} asks no model: add llm, or leave one of the two out")
    for cap, value in (("tokens", tokens), ("money", money)):
        if value is not None and not 0 < value < float("inf"):
            raise MisuseError(f"--{cap} {value}: give more than 0")
        if value is not None and not models:
            raise MisuseError(f"--{cap} {value}: only a model uses {cap}: name one with --model, or leave it out")
    if models and not environ.get("OPENAI_API_KEY") and not environ.get("OPENAI_BASE_URL"):
        raise MisuseError(
            f"--model {models}: set OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a local server), or leave --model out"
        )
    return tuple(f"llm:{models}" if name == "llm" else name for name in names)


def check_budget(budget: Budget) -> None:
    """Refuses caps that are no amounts: below nothing, or not a number.

    Raises:
        MisuseError: one line that names the cap and the mend.
    """
    for name in ("evaluations", "seconds", "gpu_seconds", "tokens", "money", "tune"):
        cap = getattr(budget, name)
        if cap is not None and not 0 <= cap < float("inf"):
            raise MisuseError(f"budget: {name} {cap}: give an amount from 0 on, or None for no cap")
