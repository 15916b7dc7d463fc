"""Random ops: not equal to the reference's result, but drawn from the same distribution.

The reference is run many times on the same inputs, each time with another state of the generator. A candidate's result is right if it could
be one more of these runs. What that means is measured, not derived: some runs of the reference are held out, the same figures are taken of
them, and a candidate may not lie far outside of theirs.

- *support*: each element has a value that the reference gives too; where that is one of a few (zero, or the kept value of a dropout), it
  must be one of them within the usual bounds, so the deterministic part is checked where it is kept;
- *ranks*: where each element stands among the reference's is uniform over all elements (the test of Kolmogorov and Smirnov for many small
  samples at once);
- *mean and variance* of the standardised elements are those of chance;
- *independence*: neighbours, rows and columns do not go together, and neither do the results of two calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

DRAWS, HELD_OUT = 32, 8
_MOST = 1 << 17
"""Elements that are looked at: all of a small output, else a run of neighbours and as many spread over the rest."""
_SIGMAS, _MARGIN = 6.0, 3.0
_OF_VALUES = frozenset({"fixed", "support", "ranks", "mean", "variance", "size", "center"})
_LAGS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Fault:
    """What does not fit: in words, and the figure with its bound. `index` is of one element, where one is to blame."""

    reason: str
    got: float
    bound: float
    expected: float = 0.0
    index: int | None = None


class Draws:
    """Many runs of a reference on the same inputs, and what may be expected of one more.

    Args:
        runs: one tensor each, of the output's shape; the last `HELD_OUT` are held out.
        tolerance: how far a value may be from one that the reference gives.
    """

    def __init__(self, runs: Sequence[torch.Tensor], tolerance: float) -> None:
        shape = runs[0].shape
        self.shape = shape
        self.width = int(shape[-1]) if shape else 1
        self._places = _places(runs[0].numel(), runs[0].device)
        taken = [run.reshape(-1)[self._places].double() for run in runs]
        self._seen = torch.stack(taken[:-HELD_OUT])
        self.tolerance = tolerance
        finite = torch.isfinite(self._seen)
        self._finite = finite.all(0)
        self._never_finite = ~finite.any(0)
        ordered = torch.nan_to_num(self._seen).sort(0).values
        self._ordered = ordered
        self._discrete = ((ordered[1:] - ordered[:-1]) > tolerance).sum(0) < (3 if runs[0].is_floating_point() else DRAWS)
        self._center, spread = ordered.mean(0), ordered.std(0)
        self._varied = self._finite & (spread > 2 * tolerance)
        self._spread = torch.where(self._varied, spread, 1.0)
        self.count = int(self._varied.sum())
        sizes = self._seen.abs()
        self._size_center, size_spread = sizes.mean(0), sizes.std(0)
        self._sizes_vary = self._varied & (size_spread > 2 * tolerance)
        self._size_spread = torch.where(self._sizes_vary, size_spread, 1.0)
        self._held = taken[-HELD_OUT:]
        squares = [self._squares(run) for run in self._held]
        self._variance, self._variance_spread = sum(squares) / HELD_OUT, _deviation(squares)
        self._own = [self._figures(run, number) for number, run in enumerate(self._held)]
        self._strong = 5 * _SIGMAS / math.sqrt(max(1, self.count))
        linked = [name for name in self._own[0] if name not in _OF_VALUES and min(own[name] for own in self._own) > self._strong]
        # Where the reference's own elements go together there are few independent ones, whose figures scatter widely.
        self._margin = 12.0 if linked else _MARGIN
        pairs = [(a, b) for a in range(HELD_OUT) for b in range(a)]
        self._own_pairs = max((abs(self._together(self._held[a], self._held[b])) for a, b in pairs), default=0.0)

    def fault(self, output: torch.Tensor) -> tuple[Fault | None, float]:
        """What shows that a result is none of the reference's, and the worst figure over its bound."""
        taken = output.reshape(-1)[self._places].double()
        finite = torch.isfinite(taken)
        odd = (self._finite & ~finite) | (self._never_finite & finite)
        if bool(odd.any()):
            at = int(odd.nonzero()[0])
            return Fault("NaN or infinity where the reference has none, or the other way round", float(taken[at]), 0.0, index=int(self._places[at])), math.inf  # fmt: skip  # noqa: E501
        figures = self._figures(taken, -1)
        ratios = {name: self._ratio(name, figure) for name, figure in figures.items()}
        worst = max(ratios.values(), default=0.0)
        if worst <= 1:
            return None, worst
        # What is wrong with the values says more than what is wrong with their order.
        name = max(ratios, key=lambda name: (ratios[name] > 1 and name in _OF_VALUES, ratios[name]))
        return Fault(self._words(name, taken), figures[name], self._bound(name), max(own[name] for own in self._own)), worst

    def middle(self, like: torch.Tensor) -> torch.Tensor:
        """What lies in the middle of the draws, as a result would that leaves chance out."""
        result = like.clone().reshape(-1)
        result[self._places] = self._center.to(like.dtype)
        return result.reshape(like.shape)

    def together(self, one: torch.Tensor, two: torch.Tensor) -> Fault | None:
        """What shows that two calls did not draw independently."""
        a, b = (output.reshape(-1)[self._places].double() for output in (one, two))
        figure, bound = abs(self._together(a, b)), max(_SIGMAS / math.sqrt(max(1, self.count)), _MARGIN * self._own_pairs)
        if self.count and figure > bound:
            same = "the same random numbers at every call" if figure > 0.95 else "the random numbers of two calls go together"
            return Fault(f"{same} (correlation {figure:.3f})", figure, bound)
        return None

    def pooled(self, outputs: Sequence[torch.Tensor]) -> Fault | None:
        """What shows in several calls on the same inputs, though not in any one."""
        if not self.count or len(outputs) < 2:
            return None
        means = [float(self._standard(output.reshape(-1)[self._places].double()).mean()) for output in outputs]
        own = [float(self._standard(run).mean()) for run in self._held]
        figure, mean = sum(means) / len(means), sum(own) / len(own)
        # The centre itself is a mean over few draws, which the runs held out share with the candidate's.
        spread = max(1 / math.sqrt(self.count), _deviation(own))
        bound = _SIGMAS * spread * math.sqrt(1 / len(means) + 1 / len(own))
        if abs(figure - mean) > bound:
            return Fault(f"over {len(means)} calls its values lie {figure - mean:+.3g} standard deviations off the reference's", figure, bound, mean)  # fmt: skip  # noqa: E501
        return None

    def _moved(self, taken: torch.Tensor) -> float:
        """Share of the elements that no draw varies and that are off. Some vary too rarely to be seen, in the reference's runs as here."""
        off = self._finite & ~self._varied & ((taken - self._center).abs() > 3 * self.tolerance)
        return float(off.double().sum()) / max(1, len(self._places))

    def _figures(self, taken: torch.Tensor, seed: int) -> dict[str, float]:
        if not self.count:
            return {"fixed": self._moved(taken)}
        z = self._standard(taken)
        return {
            "fixed": self._moved(taken), "support": self._outside(taken), "ranks": self._ranks(taken, seed),
            "mean": abs(float(z.mean())), "variance": abs(self._squares(taken) - self._variance), "size": self._sizes(taken),
            "center": self._by_center(z), **self._neighbours(taken),
        }  # fmt: skip

    def _bound(self, name: str) -> float:
        own = max(figures[name] for figures in self._own) if name != "variance" else 0.0
        root = math.sqrt(max(1, self.count))
        chance = {
            "fixed": 4 / max(1, len(self._places)),
            "support": 4 / max(1, self.count),
            "ranks": len(self._seen) + 2 * _SIGMAS * math.sqrt(2 * len(self._seen)), "mean": _SIGMAS / root,
            "variance": max(2 * _SIGMAS / root, _SIGMAS * self._variance_spread),
        }  # fmt: skip
        return max(chance.get(name, _SIGMAS / root), (2.0 if name in ("fixed", "support") else self._margin) * own)

    def _ratio(self, name: str, figure: float) -> float:
        bound = self._bound(name)
        ratio = figure / bound if bound else (math.inf if figure else 0.0)
        least = min(own[name] for own in self._own)
        if name not in _OF_VALUES and least > self._strong:
            ratio = max(ratio, least / 3 / max(figure, 1e-12))  # the reference's elements go together, and so must these
        return ratio

    def _words(self, name: str, taken: torch.Tensor) -> str:
        varied = taken[self._varied]
        zeros, right = (float((values == 0).double().mean()) if self.count else 0.0 for values in (varied, self._seen[:, self._varied]))
        if name in ("ranks", "mean", "variance", "support", "size", "center") and abs(zeros - right) > 3 / math.sqrt(self.count):
            return f"a share of {zeros:.3f} is zero where {right:.3f} is right"
        if name == "fixed":
            return "elements that chance does not change are off"
        if name == "support":
            return "values that the reference never gives"
        if name in ("size", "center"):
            return "its values do not scatter as the reference's do"
        if name == "mean":
            return f"its mean is {float(varied.mean()):.5g} where {float(self._center[self._varied].mean()):.5g} is right"
        if name == "variance":
            return "its variance is not the reference's"
        if name == "ranks":
            return "its distribution is not the reference's"
        return f"its elements are not independent: {name}"

    def _standard(self, taken: torch.Tensor) -> torch.Tensor:
        return ((taken - self._center) / self._spread)[self._varied]

    def _outside(self, taken: torch.Tensor) -> float:
        """Share of the elements with a value that the draws don't have: near none of them, or beyond all of them."""
        nearest = (self._seen - taken).abs().amin(0)
        odd = self._varied & self._discrete & (nearest > self.tolerance)
        return float(odd.double().sum()) / self.count

    def _ranks(self, taken: torch.Tensor, seed: int) -> float:
        """Chi-square of the ranks against uniform ones; ties are broken by chance."""
        below = (self._seen < taken - self.tolerance).sum(0)
        ties = (self._seen <= taken + self.tolerance).sum(0) - below
        generator = torch.Generator().manual_seed(seed & 0xFFFF)
        chance = torch.rand(taken.shape, generator=generator).to(taken.device)
        rank = (below + (chance * (ties + 1)).floor().clamp_max(ties))[self._varied].long()
        bins = torch.bincount(rank, minlength=len(self._seen) + 1).double()
        expected = self.count / len(bins)
        return float(((bins - expected).square() / expected).sum())

    def _squares(self, taken: torch.Tensor) -> float:
        # Cut off, else a few rare values make up all of it.
        return float(self._standard(taken).clamp(-4, 4).square().mean()) if self.count else 0.0

    def _size_scores(self, taken: torch.Tensor) -> torch.Tensor:
        """Magnitudes, standardised; zero where they do not vary. Where signs differ, values that go together cancel without this."""
        return torch.where(self._sizes_vary, (taken.abs() - self._size_center) / self._size_spread, 0.0)

    def _sizes(self, taken: torch.Tensor) -> float:
        return abs(float(self._size_scores(taken).sum())) / max(1, self.count)

    def _by_center(self, z: torch.Tensor) -> float:
        """Largest mean among elements of like centers, in units of what chance gives to all."""
        order = self._center[self._varied].argsort()
        means = [float(part.mean()) * math.sqrt(part.numel()) for part in z[order].tensor_split(8) if part.numel()]
        return max(map(abs, means), default=0.0) / math.sqrt(max(1, self.count))

    def _neighbours(self, taken: torch.Tensor) -> dict[str, float]:
        """Correlation of elements some places apart, among the run of neighbours."""
        run = min(len(taken), _MOST)
        values = torch.where(self._varied, (taken - self._center) / self._spread, 0.0)[:run]
        return self._correlations(values, "") | self._correlations(self._size_scores(taken)[:run], "sizes ")

    def _correlations(self, z: torch.Tensor, what: str) -> dict[str, float]:
        run, power = len(z), float(z.square().sum()) or 1.0
        found = {}
        for lag in dict.fromkeys((*_LAGS, self.width, 2 * self.width)):
            if lag < run // 2:
                found[f"{what}{lag} apart"] = abs(float((z[:-lag] * z[lag:]).sum())) / power
        if 1 < self.width < run:
            rows = z[: run // self.width * self.width].reshape(-1, self.width)
            found[f"{what}along rows"] = abs(float(rows.sum(1).square().sum()) / power - 1) / math.sqrt(self.width)
            found[f"{what}along columns"] = abs(float(rows.sum(0).square().sum()) / power - 1) / math.sqrt(rows.shape[0])
        return found

    def _together(self, a: torch.Tensor, b: torch.Tensor) -> float:
        if not self.count:
            return 0.0
        found = 0.0
        for one, two in ((self._standard(a), self._standard(b)), (self._size_scores(a), self._size_scores(b))):
            power = math.sqrt(float(one.square().sum()) * float(two.square().sum()))
            correlation = float((one * two).sum()) / power if power else 0.0
            found = max(found, correlation, key=abs)
        return found


def _places(count: int, device: torch.device) -> torch.Tensor:
    if count <= 2 * _MOST:
        return torch.arange(count, device=device)
    rest = torch.arange(_MOST, count, -(-(count - _MOST) // _MOST), device=device)
    return torch.cat([torch.arange(_MOST, device=device), rest])


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))
