"""Shared by the tests: the program beside which the package is held."""

import json
import os
import pathlib
import subprocess

import foretrain
import pytest

SMALL = {
    "cluster": {"node": "dgx-a100-80gb", "nodes": 2},
    "workload": {"train": {"model": "gpt2-xl", "global_batch": 128, "micro_batch": 8, "precision": "bf16"}},
}


@pytest.fixture
def small():
    return SMALL


@pytest.fixture
def program():
    """Runs a command of the program; what it prints."""

    # Results name the files that they depend on: those of the installed catalogue.
    environment = {**os.environ, "FORETRAIN_SCENARIOS": str(pathlib.Path(foretrain.__file__).parent / "scenarios")}

    def run(*arguments):
        command = [os.environ["FORETRAIN_PROGRAM"], *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    return run


@pytest.fixture
def program_json(program):
    return lambda *arguments: json.loads(program(*arguments, "--json"))
