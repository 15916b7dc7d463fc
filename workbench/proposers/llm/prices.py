"""What a model's tokens cost. A price that is not known is said to be unknown, never guessed."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import MisuseError

_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True)
class Price:
    """USD for one million tokens: of the prompt, of the prompt where the provider had it cached, of the answer."""

    input: float
    output: float
    cached: float | None = None

    def money(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """USD of one call; `cached` of `tokens_in` are charged at the cached price.

        >>> Price(input=2.0, output=8.0, cached=0.5).money(1_000_000, 500_000, cached=1_000_000)
        4.5
        """
        cached = min(cached, tokens_in)
        of_cached = self.input if self.cached is None else self.cached
        return ((tokens_in - cached) * self.input + cached * of_cached + tokens_out * self.output) / 1e6


def load_prices(path: Path | None = None) -> dict[str, Price]:
    """The shipped table, overridden by the user's: `path`, else what WORKBENCH_PRICES names, else that in the user's configuration folder.

    Raises:
        MisuseError: a table can't be read; the message names the file and the entry.
    """
    prices = _read(Path(__file__).with_name("prices.toml"))
    user = path or _users_file()
    if user is not None:
        prices |= _read(user)
    return prices


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of `model`; a dated release (``name-2025-04-14``) has the price of its name unless it has its own. None: unknown."""
    return prices.get(model) or prices.get(_DATED.sub("", model))


def _users_file() -> Path | None:
    if named := os.environ.get("WORKBENCH_PRICES"):
        return Path(named)
    import platformdirs

    path = Path(platformdirs.user_config_dir("kernel-workbench", appauthor=False)) / "prices.toml"
    return path if path.exists() else None


def _read(path: Path) -> dict[str, Price]:
    try:
        models: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")).get("models", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"the price table {path} can't be read: {error}") from None
    prices = {}
    for model, entry in models.items():
        try:
            price = Price(**{field: float(value) for field, value in entry.items()})
        except (TypeError, ValueError, AttributeError):
            raise MisuseError(
                f"the price table {path} has a bad entry for {model!r}: give input, output and, if you like, cached"
            ) from None
        if min(price.input, price.output, price.cached or 0.0) < 0:
            raise MisuseError(f"the price table {path} has a negative price for {model!r}")
        prices[model] = price
    return prices
