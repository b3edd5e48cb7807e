"""Answers as objects: their JSON, with attributes, and pictures of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


def _with_attributes(value: Any) -> Any:
    if isinstance(value, dict):
        return Values({key: _with_attributes(one) for key, one in value.items()})
    if isinstance(value, list):
        return [_with_attributes(one) for one in value]
    return value


class Values(dict[str, Any]):
    """A mapping whose keys are attributes, too: ``result.breakdown_s.compute``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name}; there are {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self if key.isidentifier())]


class Answer:
    """What a command of foretrain says. Attributes are the names of its JSON; times are in seconds, sizes in bytes."""

    def __init__(self, text: str) -> None:
        self._json = text
        self._values = _with_attributes(json.loads(text))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._values, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._values if key.isidentifier())]

    def to_dict(self) -> dict[str, Any]:
        """The JSON that the command line prints with ``--json``, as a dictionary."""
        answer: dict[str, Any] = json.loads(self._json)
        return answer

    def to_json(self) -> str:
        return self._json

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._values.get('scenario', 'foretrain')}>"


class Result(Answer):
    """One prediction; ``print(result)`` shows it as the command line does."""

    def __init__(self, text: str, shown: str) -> None:
        super().__init__(text)
        self._shown = shown

    def __str__(self) -> str:
        return self._shown

    def plot_breakdown(self, ax: Axes | None = None) -> Axes:
        """Where the time of a step goes."""
        parts = {name.replace("_", " "): 1e3 * seconds for name, seconds in self.breakdown_s.items()}
        return _bars(parts, "ms", f"{self.scenario}: where the time goes", ax)

    def plot_memory(self, ax: Axes | None = None) -> Axes:
        """What fills the memory of the fullest GPU, beside what it has."""
        sizes = self.memory_per_gpu_bytes
        parts = {name: size / 1e9 for name, size in sizes.items() if name not in ("total", "capacity", "fits")}
        ax = _bars(parts, "GB", f"{self.scenario}: memory of a GPU", ax)
        ax.axvline(sizes.capacity / 1e9, color="black", linestyle="--", label="what the GPU has")
        ax.axvline(sizes.total / 1e9, color="black", linestyle=":", label="all of them")
        ax.legend()
        return ax


class Explanation(Answer):
    """What bounds a scenario, what each resource is worth, and what would help."""

    def plot_sensitivities(self, ax: Axes | None = None) -> Axes:
        """The share of the time that goes with each resource."""
        shares = {one.resource: 100.0 * one.share for one in self.sensitivities}
        return _bars(shares, "% of the time that goes with it", f"{self.scenario}: what each resource is worth", ax)


class PlanReport(Answer):
    """The best plans that fit; ``plans[0].set`` is the first one's, as values to set."""

    def to_frame(self) -> pandas.DataFrame:
        """A row a plan; units in the columns' names."""
        import pandas

        return pandas.json_normalize([{k: v for k, v in plan.items() if k != "set"} for plan in self.to_dict()["plans"]])


class Accuracy(Answer):
    """Predictions beside measurements."""

    def to_frame(self) -> pandas.DataFrame:
        """A row a measurement."""
        import pandas

        return pandas.DataFrame(self.to_dict()["cases"])


def _bars(parts: dict[str, float], unit: str, title: str, ax: Axes | None) -> Axes:
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.45 * len(parts) + 1.2), layout="constrained")
    bars = ax.barh(list(parts), list(parts.values()))
    ax.bar_label(bars, fmt="%.3g", padding=3)
    ax.margins(x=0.12)
    ax.invert_yaxis()
    ax.set_xlabel(unit)
    ax.set_title(title)
    return ax
