"""What the caller gives (files, names, texts, mappings, values) as the program takes it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from foretrain import _foretrain
from foretrain.errors import ScenarioError
from foretrain.results import Answer, Stack

#: A file or a name of the catalogue; YAML text (of several lines, or in braces); or the same as a mapping.
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: What ``learn`` returned, or its file.
GivenStack = Union[Stack, str, "os.PathLike[str]"]


def is_text(given: object) -> bool:
    return isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))


@contextlib.contextmanager
def as_file(given: Scenario, name: str = "scenario") -> Iterator[str]:
    """A scenario, or a stack, as a file that exists as long as it is needed. Errors call it ``<scenario>``."""
    if not isinstance(given, Mapping) and not is_text(given):
        yield os.fspath(given)
        return
    # JSON is YAML.
    text = json.dumps(given, indent=2, ensure_ascii=False) if isinstance(given, Mapping) else given
    with as_named_file(str(text), f"{name}.yaml") as path:
        try:
            yield path
        except ScenarioError as error:
            raise error.renamed(path, f"<{name}>") from None


@contextlib.contextmanager
def as_named_file(text: str, name: str) -> Iterator[str]:
    """The text in a file of that name, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield path


@contextlib.contextmanager
def as_input(given: Scenario | Answer) -> Iterator[str]:
    """What a command takes: a scenario, a table, or an earlier answer, as a file."""
    if isinstance(given, Answer):
        with as_named_file(given.to_json(), f"{type(given).__name__.lower()}.json") as path:
            yield path
    else:
        with as_file(given) as path:
            yield path


class NamedStack:
    """A learned stack as a file; none where ``file`` is None. One that is no file of the user's is called ``<stack>``."""

    def __init__(self, file: str | None, is_users: bool) -> None:
        self.file = file
        self.overrides = [] if file is None else [_foretrain.stack_override(file)]
        self._is_users = is_users

    def named(self, text: str) -> str:
        return text if self.file is None or self._is_users else text.replace(self.file, "<stack>")


@contextlib.contextmanager
def as_stack(stack: GivenStack | None) -> Iterator[NamedStack]:
    """A stack for as long as it is needed."""
    if stack is None:
        yield NamedStack(None, True)
        return
    given = stack.text if isinstance(stack, Stack) else stack
    with as_file(given, "stack") as path:
        yield NamedStack(path, not is_text(given))


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
