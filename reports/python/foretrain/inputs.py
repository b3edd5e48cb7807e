"""Inputs of callers (files, names, texts, mappings, values) as the program takes them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Union

from foretrain import _foretrain
from foretrain.errors import PredictionError, ScenarioError, UsageError
from foretrain.results import Answer, Stack

#: A file or a name of the catalogue; YAML text (of several lines, or in braces); or the same as a mapping.
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: What ``learn`` returned, or its file.
GivenStack = Union[Stack, str, "os.PathLike[str]"]


def is_text(given: object) -> bool:
    return isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))


class GivenFiles:
    """Inputs of a call as files for its duration. Those that are no files of the caller's are called
    ``<scenario>`` and ``<stack>`` by errors, and by what went through ``named``."""

    def __init__(self) -> None:
        self._files = contextlib.ExitStack()
        self._names: dict[str, str] = {}

    def __enter__(self) -> GivenFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._files.close()
        if not self._names:
            return
        if isinstance(error, ScenarioError):
            raise error.renamed(self.named) from None
        if isinstance(error, (PredictionError, UsageError)):
            raise type(error)(self.named(str(error))) from None

    def named(self, text: str) -> str:
        for path, name in self._names.items():
            text = text.replace(path, name)
        return text

    def text_file(self, text: str, name: str) -> str:
        """The text in a file of that name, in a folder of its own."""
        path = os.path.join(self._files.enter_context(tempfile.TemporaryDirectory()), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def file(self, given: Scenario | Answer, name: str = "scenario") -> str:
        """A scenario, a table, a stack, or an earlier answer."""
        if isinstance(given, Answer):
            return self.text_file(given.to_json(), f"{type(given).__name__.lower()}.json")
        if not isinstance(given, Mapping) and not is_text(given):
            return os.fspath(given)
        # JSON is YAML.
        text = json.dumps(given, indent=2, ensure_ascii=False) if isinstance(given, Mapping) else str(given)
        path = self.text_file(text, f"{name}.yaml")
        self._names[path] = f"<{name}>"
        return path

    def stack(self, stack: GivenStack | None) -> str | None:
        """A learned stack; nothing where there is none."""
        return None if stack is None else self.file(stack.text if isinstance(stack, Stack) else stack, "stack")

    def overrides(self, changes: Mapping[str, Any] | None, stack: GivenStack | None) -> list[str]:
        """Those of ``set=`` and ``stack=``, as of ``--set`` and ``--stack``."""
        file = self.stack(stack)
        return overrides_of(changes) + ([] if file is None else ["--stack " + _foretrain.stack_override(file)])


def value_text(value: Any) -> str:
    """A value as YAML that stands in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def overrides_of(changes: Mapping[str, Any] | None) -> list[str]:
    """``{"plan.zero": 1}`` as ``plan.zero=1``."""
    return [f"{key}={value_text(value)}" for key, value in (changes or {}).items()]


def _one_of_many(value: Any) -> str:
    """A value among others: in quotes where it holds what separates them, other than in ``servers(8,dedicated)``."""
    text = value_text(value)
    outside = re.sub(r"\([^()]*\)", "", text)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) and any(c in outside for c in ",:") else text


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
