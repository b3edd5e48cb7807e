"""What the caller gives (files, names, texts, mappings, values) as the program takes it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from foretrain.errors import ScenarioError

#: A file or a name of the catalogue; YAML text (of several lines, or in braces); or the same as a mapping.
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def is_text(scenario: Scenario) -> bool:
    return isinstance(scenario, str) and ("\n" in scenario or scenario.lstrip().startswith("{"))


@contextlib.contextmanager
def as_file(scenario: Scenario) -> Iterator[str]:
    """The scenario as a file that exists as long as it is needed. Errors call it ``<scenario>``."""
    if not isinstance(scenario, Mapping) and not is_text(scenario):
        yield os.fspath(scenario)
        return
    # JSON is YAML.
    text = json.dumps(scenario, indent=2, ensure_ascii=False) if isinstance(scenario, Mapping) else scenario
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scenario.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(text))
        try:
            yield path
        except ScenarioError as error:
            raise error.renamed(path, "<scenario>") from None


def value_text(value: Any) -> str:
    """A value as YAML that stands in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def overrides_of(changes: Mapping[str, Any] | None) -> list[str]:
    """``{"plan.zero": 1}`` as ``plan.zero=1``."""
    return [f"{key}={value_text(value)}" for key, value in (changes or {}).items()]


def _one_of_many(value: Any) -> str:
    """A value among others: in quotes where it holds what separates them."""
    text = value_text(value)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) and any(c in text for c in ",:") else text


def variations_of(vary: Mapping[Any, Any] | None) -> list[str]:
    """``{"cluster.nodes": [1, 2]}`` as ``cluster.nodes=1,2``. A text stays (``"1..64x2"``); keys that change together are
    a tuple, and so are their values."""
    variations = []
    for key, values in (vary or {}).items():
        if isinstance(values, str):
            text = values
        elif isinstance(key, tuple):
            text = ",".join(":".join(_one_of_many(value) for value in together) for together in values)
        else:
            text = ",".join(_one_of_many(value) for value in values)
        variations.append(f"{','.join(key) if isinstance(key, tuple) else key}={text}")
    return variations


def options_of(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as options of a command: ``top=5`` as ``--top 5``, ``quick=True`` as ``--quick``."""
    arguments: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            arguments += [f"{option}={value_text(one)}" for one in value]
        else:
            arguments.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value_text(value)}")
    return arguments
