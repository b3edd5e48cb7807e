"""Steps on a GPU: their cases, records and table, without PyTorch and without a GPU. The numbers are made up."""

import json

import one_step
import pytest
import train_steps
from step_cases import finetune_cases, network_cases

MACHINE = ('{"date":"2026-01-01","gpus":[{"index":0,"name":"Synthetic 5000","compute_capability":"8.9","sms":100,'
           '"sm_clock_hz":2000000000,"memory_clock_hz":8000000000,"memory_bytes":34359738368,"memory_bus_bits":256,'
           '"l2_bytes":50331648}]}')


def record(model, batch, sequence, precision, execution, **more):
    """Measurement of a case by one_step.py, as the script keeps it."""
    case = dict(model=model, batch=batch, sequence=sequence, precision=precision, execution=execution)
    result = dict(values=[0.25, 0.5, 0.125], figures=dict(host_s=0.01, device_used_bytes=5e9, energy_j=None), **more)
    return dict(train_steps.record_of(case, result), pytorch="2.0", cuda="13.0", gpu="a GPU", date="2026-01-01")


def write_records(path, records):
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


def names(*arguments, **more):
    return [train_steps.name_of(case) for case in train_steps.designed_cases(*arguments, **more)]


def test_every_designed_step_has_a_name_of_its_own_and_the_quick_set_is_small():
    every = names(False)
    assert len(set(every)) == len(every) >= 40
    assert len(names(True)) <= 8
    for model in ("lenet", "resnet-18-d2l", "resnet-50", "bert-base", "gpt2-", "gpt2-medium", "gpt2-large", "gpt3-1.3b"):
        assert any(name.startswith(model) for name in every)


def test_before_ampere_every_step_in_half_precision_is_one_of_fp16_and_none_is_in_fp8():
    earlier = names(False, "fp16", fp8=False)
    assert "gpt2-b16-s1024-fp16-compiled" in earlier and not any("bf16" in name for name in earlier)
    assert len(earlier) == sum("-fp8-" not in name for name in names(False))


def test_what_was_measured_becomes_a_table_that_validate_takes(script, validated, tmp_path):
    journal = tmp_path / "steps.jsonl"
    write_records(journal, [
        record("lenet", 256, None, "fp32", "eager"), record("gpt2", 4, 512, "bf16", "compiled"),
        record("gpt2", 4, 512, "bf16", "cuda_graph"), record("llama3.2-1b", 1, 2048, "bf16", "eager"),
        dict(suite="steps", name="gpt2-b8-s512-bf16-eager", status="failed", note="lost")])
    journal.write_text(journal.read_text() + '{"name": "cut o')
    assert script("train_steps.py", "-o", tmp_path, "--table", "--node", "h200-x1").returncode == 0
    table = tmp_path / "cases_pytorch.csv"
    assert "0.25 s,5000.0 MB" in table.read_text()  # the median of three, decimal megabytes
    assert len(table.read_text().splitlines()) == 5  # a head and four cases: what failed is left out
    assert "pytorch-gpt2-b4-s512-bf16-compiled" in validated(table)


def test_records_are_points_that_calibrate_fits_about_a_quarter_of_them_held_out(program, tmp_path):
    (tmp_path / "machine.json").write_text(MACHINE)
    write_records(tmp_path / "steps.jsonl", [record("gpt2", batch, 512, "bf16", execution)
                                             for execution in ("eager", "compiled") for batch in (1, 4, 16)])
    fit = program("calibrate", "--from", tmp_path, "-o", tmp_path / "out.json")
    assert fit.returncode == 0, fit.stderr
    for said in ("steps, eager", "steps, compiled", "training steps: MAPE"):
        assert said in fit.stdout
    held_out = list(map(train_steps.held_out, names(False)))
    assert 0.15 < sum(held_out) / len(held_out) < 0.35


def test_every_step_of_fine_tuners_and_networks_has_a_name_of_its_own_and_fits_the_gpu():
    every = [train_steps.name_of(case) for cases in (finetune_cases(at_hand=train_steps.LIBRARIES), network_cases())
             for case in cases]
    assert len(set(every)) == len(every) >= 40
    for word in ("lora16", "nf4", "recompute-selective", "chunked8", "fused_linear-liger", "offload-optimizer-deepspeed"):
        assert any(name.endswith(word) or word + "-" in name for name in every), word
    assert {case["model"] for case in finetune_cases(memory_gb=24)} == {"llama3.2-1b", "llama3.2-3b"}


def test_allocations_are_listed_at_the_steps_peak_alone():
    # 100 bytes before the step; it takes 50 and 30 and gives 100 back: at most 100 + 50 + 30 = 180, then 80 + 20.
    event = lambda action, address, size, line=1: dict(  # noqa: E731
        action=action, addr=address, size=size, frames=[dict(filename="torch/nn.py", line=9, name=""),
                                                        dict(filename="a/models.py", line=line, name="")])
    events = [event("alloc", 1, 50, 7), event("segment_alloc", 1, 512), event("alloc", 2, 30, 8),
              event("free_requested", 9, 100), event("free_completed", 9, 100), event("alloc", 3, 20)]
    assert one_step.allocations_at_peak(events, 100) == (180, [[50, 1, "models.py:7"], [30, 1, "models.py:8"]])


def test_what_nvidia_smi_says_becomes_the_records_state():
    # 0x4 is the board's power, 0x20 heat; what is no number, or was cut off, says nothing.
    lines = ["1980, 650.0, 0x0000000000000004", "1500, 700.0, 0x0000000000000024", "1700, [N/A], 0x0000000000000000", "17"]
    assert one_step.state_of(lines) == {"sm_mhz": 1700.0, "throttle": ["power", "thermal"], "power_w": 675.0}
    assert one_step.state_of([]) is None


@pytest.mark.parametrize("kernel, library", [
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "cudnn"), ("void pytorch_flash::flash_fwd_kernel", "flash_2"),
    ("fmha_cutlassF_f32", "memory_efficient"), ("cudnn::bn_fw_tr", None)])
def test_whose_attention_ran_is_told_by_its_kernel(kernel, library):
    assert one_step.attention_of([[kernel]]) == library


def test_the_scenario_says_what_ran():
    said = record("gpt2", 1, 512, "bf16", "eager", attention="cudnn")["scenario"]
    assert (said["workload.train.attention"], said["workload.train.native_attention"]) == ("flash", "true")
    said = record("llama3-8b", 1, 4096, "fp8", "compiled")["scenario"]
    assert said["workload.train.fp8.scaling"] == "current" and said["workload.train.clip_gradients"] == "false"
    assert said["workload.train.fused_optimizer"] == "true" and said["workload.train.attention"] == "flash"
    said = record("resnet-50", 32, None, "bf16", "eager")["scenario"]
    assert not any("clip" in key or "fp8" in key for key in said)


def test_scripts_say_what_they_lack_and_how_they_are_used(script, tmp_path):
    assert script("train_steps.py", "-o", tmp_path, "--table").returncode == 1
    assert script("train_steps.py").returncode == 2
    unknown = script("train_steps.py", "-o", tmp_path, "--only", "gtp2")
    assert unknown.returncode == 2 and "there is no model gtp2" in unknown.stderr
    usage = script("operators.py", "--help").stdout
    assert "--minutes" in usage and "workload.operator.clock" in usage
    none = script("operators.py", "no-such-table.csv", "-o", tmp_path)
    assert none.returncode == 2 and "no-such-table.csv: no such file" in none.stderr
