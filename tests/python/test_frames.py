"""Sweeps and plans as data frames, and pictures of results."""

import subprocess
import sys

import foretrain
import pytest

pandas = pytest.importorskip("pandas")

VARY = {"cluster.nodes": [1, 2], "plan.sync.algorithm": ["ring", "hierarchical"]}


def test_a_sweep_is_the_programs_table(program, tmp_path):
    frame = foretrain.sweep("gpt2-xl-dgx-a100", VARY, fidelity="estimate", set={"plan.zero": 1})
    table = tmp_path / "out.csv"
    options = ["--vary", "cluster.nodes=1,2", "--vary", "plan.sync.algorithm=ring,hierarchical", "--set", "plan.zero=1"]
    program("sweep", "gpt2-xl-dgx-a100", *options, "--fidelity", "estimate", "-o", str(table))
    written = pandas.read_csv(table)
    assert list(frame.columns) == list(written.columns)
    for column in ("case", "cluster.nodes", "predicted.step_time_s", "predicted.memory_per_gpu_bytes"):
        assert list(frame[column]) == list(written[column])


def test_rows_are_in_order_whatever_the_number_of_processes():
    one, four = (foretrain.sweep("sync-ring-64-equal-links", {"workload.collective.ranks": "2..16"}, jobs=n) for n in (1, 4))
    assert one.equals(four)
    assert list(one["workload.collective.ranks"]) == list(range(2, 17))


def test_a_mapping_is_swept_and_rows_that_cannot_be_say_why(small):
    together = {("cluster.nodes", "workload.train.global_batch"): [(1, 64), (2, 127)]}
    frame = foretrain.sweep(small, together, fidelity="estimate")
    assert list(frame["workload.train.global_batch"]) == [64, 127]
    assert frame["predicted.step_time_s"].notna().tolist() == [True, False]
    assert "127" in frame["predicted.error"][1]
    # The file that it was for as long as the sweep took has no name that anybody knows.
    assert frame["base"].tolist() == ["<scenario>"] * 2
    assert frame["predicted.error"][1].startswith(("<scenario>:", "--vary"))


def test_texts_with_separators_stay_one_value():
    sync = {"algorithm": "ring", "bucket": "50 MB"}
    frame = foretrain.sweep("gpt2-xl-dgx-a100", {"plan.sync": [sync]}, fidelity="estimate")
    assert frame["predicted.error"].tolist() == [""]
    ways = foretrain.sweep("servers-one-server", {"plan.sync": ["ring", "servers(8,dedicated,added)"]}, fidelity="estimate")
    assert ways["predicted.error"].tolist() == ["", ""]
    assert ways["plan.sync.placement"].tolist() == ["", "dedicated"]


def test_a_table_of_cases_is_swept(tmp_path):
    cases = tmp_path / "cases.csv"
    cases.write_text("case,base,workload.collective.size\nsmall,sync-ring-4,16 MB\nlarge,sync-ring-4,160 MB\n")
    frame = foretrain.sweep(cases=cases)
    assert frame["predicted.time_s"].round(4).tolist() == [0.0015, 0.015]


def test_plans_are_a_frame():
    frame = foretrain.plan("gpt2-xl-dgx-a100", top=3).to_frame()
    assert len(frame) == 3
    assert frame["step_time_s"].is_monotonic_increasing


def test_every_answer_of_several_rows_is_a_frame(small):
    compared = foretrain.compare("sync-ring-4", "sync-through-cpu").to_frame()
    assert list(compared["scenario"]) == [one.scenario for one in foretrain.compare("sync-ring-4", "sync-through-cpu").results]
    # 15 ms beside 85 ms of the same sum.
    assert compared["speedup"].tolist() == pytest.approx([1, compared["time_s"][0] / compared["time_s"][1]])
    moments = foretrain.memory(small).to_frame()
    assert moments["bytes.total"].max() == foretrain.memory(small).peak.bytes.total
    tasks = foretrain.timeline("sync-ring-4").to_frame()
    assert (tasks["start_s"] + tasks["duration_s"]).max() == pytest.approx(foretrain.predict("sync-ring-4").time_s, rel=1e-3)
    shares = foretrain.explain(small, "estimate").to_frame()
    assert {"resource", "share"} <= set(shares.columns)


def test_without_pandas_or_matplotlib_predictions_work_and_the_rest_says_what_is_missing():
    script = """
import sys
sys.modules["pandas"] = sys.modules["matplotlib"] = None
import foretrain
result = foretrain.predict("gpt2-xl-dgx-a100")
memory = foretrain.memory("fit-zero-2")
for ask in (memory.to_frame, result.plot_breakdown, lambda: foretrain.sweep("sync-ring-4", {})):
    try:
        ask()
    except foretrain.MissingPackageError as error:
        print(error.name, error)
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [
        "pandas data frames need pandas, which is not installed; install it with `pip install pandas`",
        "matplotlib pictures need matplotlib, which is not installed; install it with `pip install matplotlib`",
        "pandas sweeps need pandas, which is not installed; install it with `pip install pandas`",
    ]


def test_pictures_have_units(small):
    pytest.importorskip("matplotlib")
    result = foretrain.predict(small, "estimate")
    assert result.plot_breakdown().get_xlabel() == "ms"
    assert result.plot_memory().get_xlabel() == "GB"
    assert "%" in foretrain.explain(small, "estimate").plot_sensitivities().get_xlabel()
