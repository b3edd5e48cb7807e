"""The parts of on_gpu.sh that need PyTorch alone, as a dry run on the CPU. The numbers mean nothing."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "validate/on_gpu.sh"
PARTS = ("finetune", "networks", "operators", "copies")  # no CPU multiplies block-scaled formats


@pytest.fixture(scope="module")
def python():
    """The Python that has PyTorch: this one, or the system's."""
    for path in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(path) and subprocess.run([path, "-c", "import torch"], capture_output=True).returncode == 0:
            return path
    return pytest.skip("no dry run of on_gpu.sh without PyTorch (Debian: python3-torch)")


@pytest.fixture(scope="module")
def visit(python, tmp_path_factory):
    """A dry run, and the folder of its results."""
    folder = tmp_path_factory.mktemp("visit") / "results"
    done = subprocess.run([SCRIPT, "visit", "--dry-run", "--minutes", "10", "-o", folder], capture_output=True, text=True,
                          env=dict(os.environ, PYTHON=python))
    return done, folder


def test_every_case_runs_on_the_cpu_and_what_needs_a_gpu_is_listed(visit):
    done, folder = visit
    assert done.returncode == 0, done.stderr
    assert "left out without a GPU: CUDA graphs" in done.stderr and "no GPU that multiplies nvfp4" in done.stderr
    for part in PARTS:
        assert pathlib.Path(f"{folder}-{part}.tar").stat().st_size > 1000
    records = [json.loads(line) for part in PARTS[:2] for line in (folder / f"{part}.jsonl").read_text().splitlines()]
    assert all(record["status"] == "measured" for record in records)
    assert "cpu-adamw-foreach-100000000" in (folder / "cpu_adam.jsonl").read_text()


@pytest.mark.parametrize("part", PARTS)
def test_every_row_is_predicted(part, visit, program):
    table = visit[1] / f"cases_{part}.csv"
    table.write_text(table.read_text().replace("this-machine.yaml", "h200-x1"))
    compared = program("validate", "--cases", table, "--json")
    assert compared.returncode == 0, compared.stderr
    answer = json.loads(compared.stdout)
    assert answer["failed"] == []
    assert {case["case"] for case in answer["cases"]} == {
        line.split(",")[0] for line in table.read_text().splitlines()[1:]}


@pytest.mark.parametrize("words", [("steps", "--dry-run"), ("finetunes",), ("--dry-run", "--minutes", "soon")])
def test_what_no_dry_run_can_do_is_refused(words):
    assert subprocess.run([SCRIPT, *words], capture_output=True).returncode == 2
