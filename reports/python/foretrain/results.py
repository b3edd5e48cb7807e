"""Answers as objects: their JSON, with attributes, and pictures of it."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

from foretrain.needed import needed

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
    """Output of a foretrain command. Attributes are the names of its JSON; times are in seconds, sizes in bytes."""

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
        """The breakdown of the step time."""
        parts = {name.replace("_", " "): 1e3 * seconds for name, seconds in self.breakdown_s.items()}
        return _bars(parts, "ms", f"{self.scenario}: where the time goes", ax)

    def plot_memory(self, ax: Axes | None = None) -> Axes:
        """Peak GPU memory by kind, against capacity."""
        sizes = self.memory_per_gpu_bytes
        parts = {name: size / 1e9 for name, size in sizes.items() if name not in ("total", "capacity", "fits")}
        ax = _bars(parts, "GB", f"{self.scenario}: peak GPU memory", ax)
        ax.axvline(sizes.capacity / 1e9, color="black", linestyle="--", label="capacity")
        ax.axvline(sizes.total / 1e9, color="black", linestyle=":", label="total")
        ax.legend()
        return ax


class Explanation(Answer):
    """The bottleneck of a scenario, its sensitivity to each resource, and single changes."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per resource."""
        return _frame(self.to_dict()["sensitivities"])

    def plot_sensitivities(self, ax: Axes | None = None) -> Axes:
        """Sensitivity of the time to each resource."""
        shares = {one.resource: 100.0 * one.share for one in self.sensitivities}
        return _bars(shares, "sensitivity (% of the time)", f"{self.scenario}: sensitivity", ax)


class PlanReport(Answer):
    """The best plans that fit; ``plans[0].set`` is the first one's, as values to set."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per plan; units in the columns' names."""
        return _frame(self.to_dict()["plans"], without="set")


class Comparison(Answer):
    """Scenarios against the first one: ``results``, and ``speedups`` of the others."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per scenario: the numbers of its result, and its ``speedup`` over the first."""
        frame = _frame([_without_lists(result) for result in self.to_dict()["results"]])
        frame["speedup"] = [1.0, *(speedup["factor"] for speedup in self.to_dict()["speedups"])]
        return frame


class Memory(Answer):
    """A GPU's memory over the step: its peak by kind, the largest micro-batch that fits, remedies."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per moment of the step."""
        return _frame(self.to_dict()["timeline"])


class Timeline(Answer):
    """A trace for Perfetto or Chrome."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per task, in seconds."""
        names: dict[Any, str] = {}
        tasks = []
        for event in self.to_dict()["traceEvents"]:
            place = event["pid"], event["tid"]
            if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
                names[event["name"], place] = event["args"]["name"]
            elif event["ph"] == "X":
                tasks.append((place, event))
        return _frame(
            [
                {
                    "process": names.get(("process_name", place), ""),
                    "thread": names.get(("thread_name", place), ""),
                    "task": event["name"],
                    "category": event["cat"],
                    "start_s": event["ts"] / 1e6,
                    "duration_s": event["dur"] / 1e6,
                    **event["args"],
                }
                for place, event in tasks
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace, a file for Perfetto."""
        pathlib.Path(path).write_text(self.to_json(), encoding="utf-8")


class Stack(Answer):
    """A settings profile learned from measured steps: ``parameters`` with their intervals; ``errors`` of defaults
    (``assumed``), of the fit (``fitted``) and in cross-validation (``left_out``: each fifth of the runs;
    ``other_scales``: each number of nodes). Other functions take it as ``stack=``."""

    @property
    def text(self) -> str:
        """The file that ``plan.framework`` and ``--stack`` take, YAML."""
        text: str = self._values["stack"]
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes that file."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    def to_frame(self) -> pandas.DataFrame:
        """One row per run: predicted / measured - 1 by defaults, by the profile, and by cross-validation."""
        return _frame(self.to_dict()["cases"])

    def __str__(self) -> str:
        return self.text


class NextRuns(Answer):
    """The runs to measure before a plan is chosen, and the expected regret after them."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per run."""
        return _frame(self.to_dict()["runs"])


class Accuracy(Answer):
    """Predictions against measurements."""

    def to_frame(self) -> pandas.DataFrame:
        """One row per measurement."""
        return _frame(self.to_dict()["cases"], without="causes")


def _without_lists(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if not isinstance(value, list)}


def _frame(rows: list[dict[str, Any]], without: str = "") -> pandas.DataFrame:
    """A row each, mappings in them as columns ``outer.inner``."""
    pandas = needed("pandas", "data frames")
    return pandas.json_normalize([{key: value for key, value in row.items() if key != without} for row in rows])


def _bars(parts: dict[str, float], unit: str, title: str, ax: Axes | None) -> Axes:
    plt = needed("matplotlib.pyplot", "pictures")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.45 * len(parts) + 1.2), layout="constrained")
    bars = ax.barh(list(parts), list(parts.values()))
    ax.bar_label(bars, fmt="%.3g", padding=3)
    ax.margins(x=0.12)
    ax.invert_yaxis()
    ax.set_xlabel(unit)
    ax.set_title(title)
    return ax
