"""Packages that only some of foretrain needs."""

from __future__ import annotations

import importlib
from typing import Any

from foretrain.errors import MissingPackageError


def needed(module: str, what: str) -> Any:
    """The module, which ``what`` (in the plural) needs. Raises MissingPackageError."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # it is there, and lacks something itself
        raise MissingPackageError(
            f"{what} need {package}, which is not installed; install it with `pip install {package}`", name=package
        ) from None
