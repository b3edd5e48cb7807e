"""Sweeps and plans as data frames, and pictures of results."""

import foretrain
import pytest

pandas = pytest.importorskip("pandas")

VARY = {"cluster.nodes": [1, 2], "plan.sync.algorithm": ["ring", "naive"]}


def test_a_sweep_is_the_programs_table(program, tmp_path):
    frame = foretrain.sweep("gpt2-xl-dgx-a100", VARY, fidelity="estimate", set={"plan.zero": 1})
    table = tmp_path / "out.csv"
    options = ["--vary", "cluster.nodes=1,2", "--vary", "plan.sync.algorithm=ring,naive", "--set", "plan.zero=1"]
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


def test_texts_with_separators_stay_one_value():
    sync = {"algorithm": "ring", "bucket": "50 MB"}
    frame = foretrain.sweep("gpt2-xl-dgx-a100", {"plan.sync": [sync]}, fidelity="estimate")
    assert frame["predicted.error"].tolist() == [""]


def test_a_table_of_cases_is_swept(tmp_path):
    cases = tmp_path / "cases.csv"
    cases.write_text("case,base,workload.collective.size\nsmall,sync-ring-4,16 MB\nlarge,sync-ring-4,160 MB\n")
    frame = foretrain.sweep(cases=cases)
    assert frame["predicted.time_s"].round(4).tolist() == [0.0015, 0.015]


def test_plans_are_a_frame():
    frame = foretrain.plan("gpt2-xl-dgx-a100", top=3).to_frame()
    assert len(frame) == 3
    assert frame["step_time_s"].is_monotonic_increasing


def test_pictures_have_units(small):
    pytest.importorskip("matplotlib")
    result = foretrain.predict(small, "estimate")
    assert result.plot_breakdown().get_xlabel() == "ms"
    assert result.plot_memory().get_xlabel() == "GB"
    assert "%" in foretrain.explain(small, "estimate").plot_sensitivities().get_xlabel()
