"""How long a training step takes, and why.

>>> import foretrain
>>> result = foretrain.predict("gpt2-xl-dgx-a100", fidelity="estimate")
>>> result.bottleneck
'compute'
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from foretrain import _foretrain
from foretrain._foretrain import __version__
from foretrain.errors import ForetrainError, PredictionError, ScenarioError, UsageError
from foretrain.results import Accuracy, Answer, Explanation, PlanReport, Result, Values
from foretrain.inputs import Scenario, as_file, options_of, overrides_of, variations_of

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Accuracy", "Answer", "Explanation", "Fidelity", "ForetrainError", "PlanReport", "PredictionError", "Result", "Scenario",
    "ScenarioError", "UsageError", "Values", "__version__", "catalogue", "command", "explain", "plan", "predict", "sweep",
    "validate",
]  # fmt: skip

#: Without contention; simulated; simulated, every step of every collective.
Fidelity = Literal["estimate", "flows", "steps"]


def predict(scenario: Scenario, fidelity: Fidelity = "flows", set: Mapping[str, Any] | None = None) -> Result:
    """How long a scenario takes: a file, a name of the catalogue, YAML text or a mapping. ``set`` replaces values by their
    dotted keys: ``{"plan.tensor": 4}``."""
    with as_file(scenario) as file:
        return Result(*_foretrain.predict(file, overrides_of(set), fidelity))


def sweep(
    scenario: Scenario | None = None,
    vary: Mapping[Any, Any] | None = None,
    *,
    cases: str | os.PathLike[str] | None = None,
    fidelity: Fidelity = "flows",
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
) -> pandas.DataFrame:
    """Every combination of values as a row, or each row of the table ``cases``. ``vary`` is ``{"cluster.nodes": [1, 2, 4]}``
    or ``{"cluster.nodes": "1..64x2"}``; keys that change together are a tuple, and their values are, too. Columns are those
    of ``foretrain sweep``: their unit is in their name; ``predicted.error`` says why a row has no prediction."""
    import pandas

    with as_file("" if scenario is None else scenario) as file:
        header, kinds, rows = _foretrain.sweep(
            file, "" if cases is None else os.fspath(cases), variations_of(vary), overrides_of(set), fidelity, jobs or 0
        )
    frame = pandas.DataFrame(rows, columns=header)
    for column, kind in zip(header, kinds):
        if kind == "number":
            frame[column] = pandas.to_numeric(frame[column])
        elif kind == "flag":
            frame[column] = frame[column].map({"true": True, "false": False}).astype("boolean")
        elif not column.startswith("predicted."):
            numbers = pandas.to_numeric(frame[column], errors="coerce")
            if numbers.notna().all():
                frame[column] = numbers
    return frame


def plan(
    scenario: Scenario, fidelity: Fidelity = "flows", set: Mapping[str, Any] | None = None, **options: Any
) -> PlanReport:
    """The best of all parallel plans that fit. Further options are those of ``foretrain plan``: ``objective="cost"``,
    ``top=10``, ``fix=["tensor"]``, ``nodes="8..64"``."""
    return PlanReport(_told("plan", scenario, fidelity, set, options))


def explain(scenario: Scenario, fidelity: Fidelity = "flows", set: Mapping[str, Any] | None = None) -> Explanation:
    """What bounds a scenario, what each resource is worth, and what would help."""
    return Explanation(_told("explain", scenario, fidelity, set, {}))


def validate(cases: str | os.PathLike[str], fidelity: Fidelity = "flows", anchor: int | None = None) -> Accuracy:
    """Predictions beside the measured columns of a table of cases. With ``anchor=1`` one run of each kind says how fast the
    own software is."""
    arguments = options_of({"cases": cases, "fidelity": fidelity, "anchor": anchor, "json": True})
    return Accuracy(_json_of(["validate", *arguments]))


def command(*arguments: str) -> str:
    """What ``foretrain ARGUMENTS…`` prints, for all that has no function here: ``command("memory", "mine.yaml")``."""
    status, output, messages = _foretrain.command([str(one) for one in arguments])
    if status != 0:
        raise PredictionError(messages.strip() or output.strip())
    return output


def catalogue(section: Literal["scenarios", "hardware", "models", "trainers"]) -> dict[str, str]:
    """What the catalogue has, each name with its description."""
    return dict(_foretrain.catalogue(section))


def _told(name: str, scenario: Scenario, fidelity: str, set: Mapping[str, Any] | None, options: Mapping[str, Any]) -> str:
    """What a command about a scenario says as JSON."""
    with as_file(scenario) as file:
        return _json_of([name, file, *options_of({**options, "fidelity": fidelity, "set": overrides_of(set), "json": True})])


def _json_of(arguments: list[str]) -> str:
    """Commands say with their status, too, that no plan fits or a bar is missed; their answer counts."""
    _, output, messages = _foretrain.command(arguments)
    if not output:
        raise PredictionError(messages.strip())
    return output
