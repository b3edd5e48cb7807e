"""The package says what the program says."""

import json
import pathlib

import foretrain
import pytest

CASES = "case,base,measured.time\nring,sync-ring-4,16 ms\nthrough the CPU,sync-through-cpu,85 ms\n"


@pytest.mark.parametrize("name", ["sync-ring-4", "gpt2-xl-dgx-a100", "contention-two-trainings", "loading-hdd-files"])
def test_a_result_is_the_programs_json(name, program_json):
    assert foretrain.predict(name).to_dict() == program_json("predict", name)


def test_a_result_shows_the_programs_text(program):
    assert str(foretrain.predict("sync-ring-4")) == program("predict", "sync-ring-4")


def test_fidelity_and_changed_values_are_the_programs_options(program_json):
    result = foretrain.predict("gpt2-xl-dgx-a100", fidelity="estimate", set={"plan.zero": 1, "plan.sync.bucket": "50 MB"})
    options = ["--fidelity", "estimate", "--set", "plan.zero=1", "--set", "plan.sync.bucket=50 MB"]
    assert result.to_dict() == program_json("predict", "gpt2-xl-dgx-a100", *options)


def test_a_mapping_a_text_and_a_file_are_the_same_scenario(small, tmp_path):
    text = json.dumps(small, indent=1)
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    results = [foretrain.predict(scenario, "estimate").to_dict() for scenario in (small, text, file, str(file))]
    for result in results:
        del result["resolved"]  # names the file
    assert all(result == results[0] for result in results)


def test_values_are_attributes(small):
    result = foretrain.predict(small, "estimate")
    assert result.breakdown_s.compute == result.to_dict()["breakdown_s"]["compute"]
    assert "step_time_s" in dir(result)
    with pytest.raises(AttributeError, match="there is no steptime; there are schema_version, scenario, fidelity, step_time_s"):
        result.steptime


def test_explanations_plans_and_validations_are_the_programs(small, program_json, tmp_path):
    assert foretrain.explain("sync-ring-4").to_dict() == program_json("explain", "sync-ring-4")
    plans = foretrain.plan("gpt2-xl-dgx-a100", top=3, objective="memory", fix=["zero", "tensor"])
    options = ["--top", "3", "--objective", "memory", "--fix", "zero", "--fix", "tensor"]
    assert plans.to_dict() == program_json("plan", "gpt2-xl-dgx-a100", *options)
    cases = tmp_path / "cases.csv"
    cases.write_text(CASES)
    accuracy = foretrain.validate(cases)
    assert accuracy.to_dict() == program_json("validate", "--cases", str(cases))
    assert accuracy.overall.n == 2


def test_comparisons_memory_and_timelines_are_the_programs(program, program_json, tmp_path):
    ways = foretrain.compare("servers-one-server", vary={"plan.sync": ["ring", "servers(8)"]})
    assert ways.to_dict() == program_json("compare", "servers-one-server", "--vary", "plan.sync=ring,servers(8)")
    two = foretrain.compare("sync-ring-4", "sync-through-cpu", fidelity="estimate")
    assert two.to_dict() == program_json("compare", "sync-ring-4", "sync-through-cpu", "--fidelity", "estimate")
    changed = foretrain.memory("fit-zero-2", set={"plan.zero": 1})
    assert changed.to_dict() == program_json("memory", "fit-zero-2", "--set", "plan.zero=1")
    trace = tmp_path / "trace.json"
    program("timeline", "sync-ring-4", "-o", str(trace))
    timeline = foretrain.timeline("sync-ring-4")
    assert timeline.to_json() == trace.read_text()
    timeline.save(tmp_path / "own.json")
    assert (tmp_path / "own.json").read_text() == trace.read_text()


def test_a_report_is_the_programs_page(program, tmp_path):
    answer, cases = tmp_path / "result.json", tmp_path / "cases.csv"
    answer.write_text(foretrain.predict("sync-through-cpu").to_json())
    cases.write_text(CASES)
    own, page = tmp_path / "own.html", tmp_path / "page.html"
    foretrain.report("sync-ring-4", foretrain.predict("sync-through-cpu"), cases, output=own, title="Rings & CPUs")
    program("report", "sync-ring-4", str(answer), str(cases), "-o", str(page), "--title", "Rings & CPUs")
    assert own.read_bytes() == page.read_bytes()
    with pytest.raises(foretrain.UsageError, match="name it .html"):
        foretrain.report("sync-ring-4", output=tmp_path / "page.pdf")


def test_other_commands_are_run_as_they_are(program):
    assert foretrain.command("memory", "fit-zero-2") == program("memory", "fit-zero-2")
    assert program("--version").strip() == foretrain.__version__


def test_the_catalogue_is_the_installed_one():
    folder = pathlib.Path(foretrain.__file__).parent / "scenarios"
    runs = sorted(file.stem for file in (folder / "runs").glob("*.yaml"))
    assert sorted(foretrain.catalogue("scenarios")) == runs
    assert "llama3-8b" in foretrain.catalogue("models")


def test_what_is_promised_is_there():
    package = pathlib.Path(foretrain.__file__).parent
    assert (package / "py.typed").exists() and (package / "_foretrain.pyi").exists()
    assert all(hasattr(foretrain, name) for name in foretrain.__all__)
