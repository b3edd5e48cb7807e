"""The examples of the documentation."""

import doctest
import os
import pathlib
import subprocess
import sys

import foretrain
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def test_the_packages_own_examples():
    assert doctest.testmod(foretrain).failed == 0


def test_the_pages_examples():
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    assert doctest.testfile(str(SOURCE / "reports/docs/python.md"), module_relative=False).failed == 0


def test_the_notebook_runs(tmp_path):
    for module in ("nbconvert", "ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(module)
    notebook = SOURCE / "reports/python/examples/first-steps.ipynb"
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", notebook, "--output-dir", tmp_path]
    # The kernel that is installed may be another environment's.
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(foretrain.__file__).parents[1])}
    subprocess.run([*command, "--ExecutePreprocessor.kernel_name=python3"], check=True, env=environment)
