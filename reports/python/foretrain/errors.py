"""Exceptions."""

from __future__ import annotations

from collections.abc import Callable


class ForetrainError(Exception):
    """Whatever foretrain refuses or cannot do."""


class ScenarioError(ForetrainError, ValueError):
    """Bad input. Its text reads ``file:line:column: key: what is wrong; what would be right``."""

    file: str  #: "<scenario>" where the scenario was no file
    line: int | None
    column: int | None
    key: str  #: dotted; may be empty
    problem: str  #: what is wrong
    remedy: str  #: what would be right

    def __init__(self, text: str, file: str, line: int, column: int, key: str, problem: str, remedy: str) -> None:
        super().__init__(text)
        self.file, self.key, self.problem, self.remedy = file, key, problem, remedy
        self.line, self.column = line or None, column or None

    def renamed(self, named: Callable[[str], str]) -> ScenarioError:
        """The same error, files called as ``named`` calls them in texts."""
        text, file = named(str(self)), named(self.file)
        return ScenarioError(text, file, self.line or 0, self.column or 0, self.key, self.problem, self.remedy)


class UsageError(ForetrainError, ValueError):
    """Arguments that make no sense, or an environment that cannot do what was asked."""


class PredictionError(ForetrainError, RuntimeError):
    """A possible scenario that could not be predicted."""


class MissingPackageError(ForetrainError, ImportError):
    """The call needs a package, ``name``, that is not installed: pandas or matplotlib."""
