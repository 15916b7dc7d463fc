"""What the run may spend, what it has spent, and what is on its way."""

from __future__ import annotations

from dataclasses import replace

from workbench.brief import Budget, Usage
from workbench.candidate import Evaluation

_UNITS = {"evaluations": "evaluations", "seconds": "seconds", "gpu_seconds": "GPU seconds", "tokens": "tokens", "money": "USD"}


class Ledger:
    """Hard caps: an ask is refused when its cost, on top of what is in flight, could pass one.

    What a coming call will cost is not known, so the dearest one seen in this run stands for it.

    Attributes:
        open: asks in flight that may still become evaluations; `unanswered`: those whose proposal has not come.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent = Budget(evaluations=0, seconds=0.0, gpu_seconds=0.0, tokens=0, money=0.0, tune=0)
        self.open = 0
        self.unanswered = 0
        self._dearest = {"tokens": 0.0, "money": 0.0, "gpu_seconds": 0.0}

    def add_usage(self, usage: Usage) -> None:
        """A proposer's answer was paid for, whether or not it brought a candidate."""
        tokens = usage.tokens_in + usage.tokens_out
        self._dearest["tokens"] = max(self._dearest["tokens"], tokens)
        self._dearest["money"] = max(self._dearest["money"], usage.money)
        self.charge(Budget(tokens=tokens, money=usage.money))

    def add_evaluation(self, evaluation: Evaluation, tuned: bool) -> None:
        """One evaluation was made; its stages count as GPU time where a GPU judged."""
        seconds = sum(evaluation.stage_ms.values()) / 1e3 if evaluation.judged_by.startswith("gpu") else 0.0
        self._dearest["gpu_seconds"] = max(self._dearest["gpu_seconds"], seconds)
        self.charge(Budget(evaluations=1, gpu_seconds=seconds))
        self.spent = replace(self.spent, tune=self.spent.tune + int(tuned))

    def charge(self, more: Budget) -> None:
        """Adds every figure of `more` that is not None. `tune` is left alone: of what is spent it counts points, and has no None."""
        old = self.spent
        self.spent = replace(
            old,
            evaluations=(old.evaluations or 0) + (more.evaluations or 0),
            seconds=(old.seconds or 0.0) + (more.seconds or 0.0),
            gpu_seconds=(old.gpu_seconds or 0.0) + (more.gpu_seconds or 0.0),
            tokens=(old.tokens or 0) + (more.tokens or 0),
            money=(old.money or 0.0) + (more.money or 0.0),
        )

    def refusal(self) -> str:
        """Which cap one more ask could pass, in words; empty where none."""
        coming = {
            "evaluations": self.open + 1,
            "tokens": self._dearest["tokens"] * (self.unanswered + 1),
            "money": self._dearest["money"] * (self.unanswered + 1),
            "gpu_seconds": self._dearest["gpu_seconds"] * (self.open + 1),
            "seconds": 0.0,
        }
        for name, unit in _UNITS.items():
            cap, spent = getattr(self.budget, name), getattr(self.spent, name)
            if cap is not None and (spent >= cap or spent + coming[name] > cap):
                digits = 4 if name == "money" else 2
                used = f"budget: {_figure(spent, digits)} of {_figure(cap, digits)} {unit} are used"
                dearest = self._dearest.get(name)
                return used if spent >= cap or not dearest else f"{used}, and one more may take {_figure(dearest, digits)}"
        return ""

    @property
    def overtime(self) -> bool:
        """The seconds are used up, whatever is in flight."""
        return self.budget.seconds is not None and (self.spent.seconds or 0.0) >= self.budget.seconds

    def left(self) -> Budget:
        """What is left for the next ask, that of asks in flight taken off."""

        def rest(name: str, flying: float = 0) -> float | None:
            cap = getattr(self.budget, name)
            return None if cap is None else max(cap - getattr(self.spent, name) - flying, 0)

        evaluations, tokens = rest("evaluations", self.open), rest("tokens", self._dearest["tokens"] * self.unanswered)
        return Budget(
            evaluations=None if evaluations is None else int(evaluations),
            seconds=rest("seconds"),
            gpu_seconds=rest("gpu_seconds", self._dearest["gpu_seconds"] * self.open),
            tokens=None if tokens is None else int(tokens),
            money=rest("money", self._dearest["money"] * self.unanswered),
            tune=self.budget.tune,
        )


def _figure(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits and "." in text else text
