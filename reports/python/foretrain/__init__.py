"""Predicts how long a training step takes, and why.

>>> import foretrain
>>> result = foretrain.predict("gpt2-xl-dgx-a100", fidelity="estimate")
>>> result.bottleneck
'exposed communication'
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from foretrain import _foretrain
from foretrain._foretrain import __version__
from foretrain.errors import ForetrainError, MissingPackageError, PredictionError, ScenarioError, UsageError
from foretrain.inputs import GivenFiles, GivenStack, Scenario, options_of, overrides_of, variations_of
from foretrain.needed import needed
from foretrain.results import (
    Accuracy, Answer, Comparison, Explanation, Memory, NextRuns, PlanReport, Result, Stack, Timeline, Values,
)  # fmt: skip

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Accuracy", "Answer", "Comparison", "Explanation", "Fidelity", "ForetrainError", "GivenStack", "Memory",
    "MissingPackageError", "NextRuns", "PlanReport", "PredictionError", "Result", "Scenario", "ScenarioError", "Stack",
    "Timeline", "UsageError", "Values", "__version__", "catalogue", "command", "compare", "explain", "learn", "memory",
    "next_runs", "plan", "predict", "report", "sweep", "timeline", "validate",
]  # fmt: skip

#: Without contention; simulated; simulated, every step of every collective.
Fidelity = Literal["estimate", "flows", "steps"]

#: Values in place of the scenario's own, by their dotted keys: ``{"plan.tensor": 4}``.
Changes = Mapping[str, Any]


def predict(
    scenario: Scenario, fidelity: Fidelity = "flows", set: Changes | None = None, stack: GivenStack | None = None
) -> Result:
    """Predicts a scenario: a file, a name of the catalogue, YAML text or a mapping. ``set`` replaces values by their
    dotted keys: ``{"plan.tensor": 4}``. ``stack`` is what ``learn`` said, or its file."""
    with GivenFiles() as files:
        answer, shown = _foretrain.predict(files.file(scenario), files.overrides(set, stack), fidelity)
    return Result(files.named(answer), files.named(shown))


def sweep(
    scenario: Scenario | None = None,
    vary: Mapping[Any, Any] | None = None,
    *,
    cases: str | os.PathLike[str] | None = None,
    fidelity: Fidelity = "flows",
    set: Changes | None = None,
    stack: GivenStack | None = None,
    jobs: int | None = None,
) -> pandas.DataFrame:
    """Every combination of values as a row, or each row of the table ``cases``. ``vary`` is ``{"cluster.nodes": [1, 2, 4]}``
    or ``{"cluster.nodes": "1..64x2"}``; keys that change together are a tuple, and their values are, too. Columns are those
    of ``foretrain sweep``: their unit is in their name; ``predicted.error`` says why a row has no prediction."""
    pandas = needed("pandas", "sweeps")
    with GivenFiles() as files:
        file = files.file("" if scenario is None else scenario)
        table = "" if cases is None else os.fspath(cases)
        overrides = files.overrides(set, stack)
        header, kinds, rows = _foretrain.sweep(file, table, variations_of(vary), overrides, fidelity, jobs or 0)
    frame = pandas.DataFrame([[files.named(cell) for cell in row] for row in rows], columns=header)
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
    scenario: Scenario,
    fidelity: Fidelity = "flows",
    set: Changes | None = None,
    stack: GivenStack | None = None,
    **options: Any,
) -> PlanReport:
    """The best of all parallel plans that fit. Further options are those of ``foretrain plan``: ``objective="cost"``,
    ``top=10``, ``fix=["tensor"]``, ``nodes="8..64"``."""
    return PlanReport(_told("plan", [scenario], stack, {**options, "fidelity": fidelity, "set": overrides_of(set)}))


def explain(
    scenario: Scenario,
    fidelity: Fidelity = "flows",
    set: Changes | None = None,
    stack: GivenStack | None = None,
    **options: Any,
) -> Explanation:
    """The bottleneck of a scenario, its sensitivity to each resource, and single changes that would make it faster."""
    return Explanation(_told("explain", [scenario], stack, {**options, "fidelity": fidelity, "set": overrides_of(set)}))


def compare(
    *scenarios: Scenario,
    vary: Mapping[Any, Any] | None = None,
    fidelity: Fidelity = "flows",
    set: Changes | None = None,
    stack: GivenStack | None = None,
    jobs: int | None = None,
) -> Comparison:
    """Two or more scenarios against the first; or one scenario for each combination of the values of ``vary``, which
    ``sweep`` takes, too."""
    options = {"vary": variations_of(vary), "fidelity": fidelity, "set": overrides_of(set), "jobs": jobs}
    return Comparison(_told("compare", scenarios, stack, options))


def memory(scenario: Scenario, set: Changes | None = None, stack: GivenStack | None = None) -> Memory:
    """A GPU's memory by kind, over the step."""
    return Memory(_told("memory", [scenario], stack, {"set": overrides_of(set)}))


def timeline(
    scenario: Scenario, fidelity: Fidelity = "flows", set: Changes | None = None, stack: GivenStack | None = None
) -> Timeline:
    """The trace of a step: what runs where and when."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        options = {"fidelity": fidelity, "set": overrides_of(set), "output": trace}
        _told("timeline", [scenario], stack, options, json=False)
        answer = trace.read_text(encoding="utf-8")
    return Timeline(answer)


def report(
    *inputs: Scenario | Answer,
    output: str | os.PathLike[str],
    fidelity: Fidelity = "flows",
    set: Changes | None = None,
    stack: GivenStack | None = None,
    **options: Any,
) -> None:
    """Writes one HTML page of scenarios, tables (sweeps and measured cases) and answers of ``predict``, ``explain``,
    ``memory``, ``plan`` and ``validate``. Further options are those of ``foretrain report``:
    ``title="Today and tomorrow"``, ``plan=True``, ``gpus=[8, 64]``."""
    options = {**options, "output": output, "fidelity": fidelity, "set": overrides_of(set)}
    _told("report", inputs, stack, options, json=False)


def learn(runs: str | os.PathLike[str], base: str | os.PathLike[str] | None = None, *, jobs: int | None = None) -> Stack:
    """Fits a settings profile to the measured steps of the table ``runs``, to predict with. ``base`` names the framework
    for settings that the runs do not determine; by default each run's own."""
    return Stack(_told("learn", [runs], None, {"base": base, "jobs": jobs}))


def next_runs(
    stack: GivenStack, scenario: Scenario, set: Changes | None = None, *, jobs: int | None = None, **options: Any
) -> NextRuns:
    """Runs to measure before a plan is chosen for the scenario (or among the rows of a table, a file ``.csv``). Further
    options are those of ``foretrain learn --next``: ``budget="64 GPU-hours"``, ``nodes=4``, ``runs=3``, ``fix=["tensor"]``."""
    options = {**options, "set": overrides_of(set), "jobs": jobs}
    return NextRuns(_told("learn", [scenario], stack, options, stack_option="next"))


def validate(
    cases: str | os.PathLike[str],
    fidelity: Fidelity = "flows",
    anchor: int | None = None,
    stack: GivenStack | None = None,
    **options: Any,
) -> Accuracy:
    """Predictions beside the measured columns of a table of cases. With ``anchor=1`` one run of each kind says how fast the
    own software is. Further options are those of ``foretrain validate``: ``pairs=["plan.sync"]``."""
    return Accuracy(_told("validate", [], stack, {**options, "cases": cases, "fidelity": fidelity, "anchor": anchor}))


def command(*arguments: str) -> str:
    """Output of ``foretrain ARGUMENTS…``, for commands without a function here: ``command("memory", "mine.yaml")``."""
    status, output, messages = _foretrain.command([str(one) for one in arguments])
    if status != 0:
        raise PredictionError(messages.strip() or output.strip())
    return output


def catalogue(section: Literal["scenarios", "hardware", "models", "frameworks"]) -> dict[str, str]:
    """Names of the catalogue with their descriptions."""
    return dict(_foretrain.catalogue(section))


def _told(
    name: str,
    inputs: Iterable[Scenario | Answer],
    stack: GivenStack | None,
    options: Mapping[str, Any],
    *,
    stack_option: str = "stack",
    json: bool = True,
) -> str:
    """A command's output for its inputs, as JSON if it has that. Commands say with their status, too, that no plan fits or
    a bar is missed; their answer counts."""
    with GivenFiles() as files:
        words = [files.file(one) for one in inputs]
        arguments = options_of({**options, stack_option: files.stack(stack), "json": json})
        status, output, messages = _foretrain.command([name, *words, *arguments])
        if not output and (json or status != 0):
            raise PredictionError(messages.strip())
    return files.named(output)
