"""Shared by the tests of validate/pytorch: scripts run as users run them, and the program that takes their tables."""

import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "validate/pytorch"
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
try:
    import torch  # noqa: F401
except ImportError:  # what only needs their names goes on without it
    sys.modules["models"] = types.ModuleType("models")


@pytest.fixture
def script():
    """Runs one of the scripts by its name."""

    def run(name, *arguments):
        system = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        return subprocess.run([system, "-B", SCRIPTS / name, *map(str, arguments)], capture_output=True, text=True)

    return run


@pytest.fixture
def program():
    def run(*arguments):
        return subprocess.run([os.environ["FORETRAIN_PROGRAM"], *map(str, arguments)], capture_output=True, text=True)

    return run


@pytest.fixture
def validated(program):
    """The cases of a table, none of which failed, by name."""

    def run(table):
        done = program("validate", "--cases", table, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["failed"] == []
        return {case["case"]: case for case in answer["cases"]}

    return run
