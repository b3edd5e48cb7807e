"""Training between hosts: its cases and tables without PyTorch, and a few real steps where root and PyTorch are there."""

import json

import pytest

MACHINE = dict(torch="2.6", processor="a processor", cores=2, kernel="6", date="2026-01-01")


def write_runs(path, runs, document="host training", **common):
    """A file as host_steps.py leaves it. The numbers are made up: this is about names, units and the table's form."""
    usual = dict(batch=2, rate=1000, share=1.0, cores_busy=0.5, **common)
    if document == "host training":
        usual.update(values=[0.2, 0.4], median_s=0.25, spread=0.01, others=0.0)
    path.write_text(json.dumps(dict(kind=document, machine=MACHINE,
                                    runs=[dict(usual, name=name, **run) for name, run in runs.items()])))


@pytest.fixture
def table_of(script, validated, tmp_path):
    """The text of the table that the runs become, and its cases as `foretrain validate` takes them."""

    def made(runs, *options, **more):
        write_runs(tmp_path / "runs.json", runs, **more)
        table = tmp_path / "cases.csv"
        done = script("host_steps.py", "-o", tmp_path / "runs.json", "--table", table, "--table-only", *options)
        assert done.returncode == 0, done.stderr
        return table.read_text(), validated(table)

    return made


def listed(script, *options):
    """Names of the cases that would be measured; each is there once."""
    names = script("host_steps.py", "--list", *options).stdout.splitlines()
    assert len(set(names)) == len(names)
    return names


def test_every_designed_run_has_a_name_of_its_own(script):
    names = listed(script)
    assert len(names) >= 150
    assert {"mlp-d2l-b256-alone", "lenet-b128-ring2-100", "resnet-18-b8-server1-2000",
            "gpt-small-b4-ring4-1000-slow300-half", "bert-small-b4-async3-500-half"} <= set(names)
    assert len(listed(script, "--parallel")) >= 300
    assert len(listed(script, "--vision")) >= 30


def test_steps_become_a_table_that_can_be_drawn(table_of, program, tmp_path):
    text, cases = table_of(dict(
        one=dict(kind="ring", workers=2), two=dict(kind="async", workers=3, share=0.5, slow=300, staleness_mean=2.0),
        three=dict(kind="server", workers=2, servers=2, peak_bytes=300000000, exposed_s=0.1),
        four=dict(kind="bounded", workers=3, bound=1, share=0.5, slow_core=2),
        five=dict(kind="ring", workers=4, share=0.5, hook="fp16", accumulate=2, slow_core=2, background=[0, 1],
                  checkpoint=True)), model="gpt-small")
    assert "250.0000 ms" in text
    # Memory is a row of its own.
    assert set(cases) == {f"hosts-{name}" for name in ("one", "two", "three", "four", "five", "three-memory")}
    picture = tmp_path / "steps.svg"
    draw = ("plot", "cases", tmp_path / "cases.csv", "--x", "plan.data", "--panel", "replay.model", "-o", picture)
    assert program(*draw, "--curve", "workload.train.micro_batch").returncode == 0
    assert "gpt-small" in picture.read_text() and "micro batch " in picture.read_text()
    assert program(*draw, "--where", "replay.way=none").returncode == 2


def test_ways_to_divide_a_model_become_scenarios(table_of):
    text, cases = table_of(dict(
        one=dict(kind="tensor", workers=2, tensor=2, sequence=True, checkpoint=True),
        two=dict(kind="pipeline", workers=2, pipeline=2, interleave=2, schedule="zero_bubble", micro_batches=4),
        three=dict(kind="sharded", workers=4, share=0.5, data=4, sharding="hybrid", shard=2, uplink=200),
        four=dict(kind="optimizer", workers=2, data=2, sharding="optimizer", slow=300),
        five=dict(kind="context", workers=2, context=2, slow_core=2),
        six=dict(kind="pipeline", workers=4, share=0.5, data=2, pipeline=2, schedule="1f1b", micro_batches=4,
                 stage_layers=[5, 3], background=[0, 3])), model="llama-tall", thread_s=0.1)
    assert "150.0000 ms" in text  # of 250, the thread worked 100
    assert len(cases) == 6


def test_vision_language_models_are_trained_whole_and_in_part(table_of):
    text, cases = table_of(dict(
        one=dict(workers=1, images=4, peak_bytes=500000000),
        two=dict(workers=2, freeze=["vision"], lora=8, exposed_s=0.1),
        three=dict(workers=4, share=0.5, freeze=["vision", "language"], accumulate=2)),
        "--vision", kind="vision", model="llava-small")
    for cell in ("{ images: 4, text: 64 }", '"[vision, language]"', '"{ rank: 8, targets: [attention, ffn] }"',
                 "hosts-vision"):
        assert cell in text
    assert "hosts-one-memory" in cases


def test_whole_trainings_become_a_table_whose_lengths_validate_compares(table_of, tmp_path):
    operators = tmp_path / "operators.json"
    operators.write_text(json.dumps(dict(points=[
        dict(name="probe: product", figure="probe", median_s=0.003),
        dict(name="probe: convolution", figure="probe", median_s=0.006)])))
    text, cases = table_of(dict(
        plain=dict(every=0, between=0, deaths=0),
        saved=dict(every=4, mode="asynchronous", storage=200, between=0, deaths=0),
        died=dict(every=4, mode="synchronous", storage=500, between=15, deaths=2)), "--lifetime", "--operators", operators,
        document="host lifetimes", kind="lifetime", model="llama-tall", workers=2, data=2, steps=24, heartbeat=0.5,
        start_s=5.0, initialise_s=0.4, length_s=30.0, done_again=0, probes=[dict(product=3.0, convolution=6.0, relu=0.2)])
    assert "software: 0.008333 h" in text and "link_bandwidth: 23.91 MB/s" in text
    assert {case["quantity"] for case in cases.values()} == {"time_to_train"}


def test_an_all_reduce_on_processors_takes_its_own_time_and_that_of_its_sums_beside_its_bytes(program):
    def step_of(**figures):
        changes = [word for name, value in figures.items()
                   for word in ("--set", f"cluster.node.gpu.processor.{name}={value}")]
        return json.loads(program("predict", "data-parallel-hosts", "--json", *changes).stdout)["step_time_s"]

    # LeNet's gradients are one bucket, summed after the backward pass. 2 ms more are that much; its 129,068 numbers,
    # 0.516 MB, are sent once by each of two hosts, and take 0.516 ms more at 0.5 GB/s than at 1 GB/s.
    usual = step_of(all_reduce="1 ms", sum_rate="1 GB/s")
    assert step_of(all_reduce="3 ms", sum_rate="1 GB/s") - usual == pytest.approx(2e-3, rel=1e-4)
    assert step_of(all_reduce="1 ms", sum_rate="0.5 GB/s") - usual == pytest.approx(0.516e-3, rel=0.02)
    # Half a core is not held up: it waits for the card for most of the time.
    half = [step_of(all_reduce="1 ms", sum_rate=rate, share="0.5") for rate in ("0.5 GB/s", "1 GB/s")]
    assert half[0] - half[1] == pytest.approx(0.516e-3, rel=0.02)


def test_runs_that_cannot_be_are_refused(script, tmp_path):
    assert script("host_steps.py", "--list", "--only", "lenot").returncode == 2
    assert script("host_steps.py").returncode == 2
    missing = ("-o", tmp_path / "none.json", "--table", tmp_path / "table.csv", "--table-only")
    assert script("host_steps.py", *missing).returncode == 1


# 0.66 MB of gradients: by the ring 53 ms at 100 Mbit/s, through the server four times as much. What others on the machine
# take is said, not judged; but no step can be shorter than its bytes, and half as long again is no step of ours.
@pytest.mark.parametrize("only, options, bars", [
    ("mlp-d2l-b256-ring2-100-half,mlp-d2l-b256-server2-100-half", (), ("hosts-ring=50", "hosts-server=50")),
    ("llama-tall-b2-tensor2-1000,moe-b4-data2-expert2-1000", ("--parallel",), ("hosts-tensor=60", "hosts-experts=60"))])
def test_real_steps_are_measured_kept_and_take_about_as_long_as_predicted(only, options, bars, script, program, tmp_path):
    torch = pytest.importorskip("torch", reason="no steps are measured without PyTorch (Debian: python3-torch)")
    if options and torch.__version__ < "2.5":
        pytest.skip("a model is divided over hosts by PyTorch 2.5 or newer (Debian 13: python3-torch)")
    table = tmp_path / "cases.csv"
    done = script("host_steps.py", *options, "-o", tmp_path / "runs.json", "--only", only, "--table", table,
                  "--minutes", "0.5")
    if done.returncode == 2:
        pytest.skip(done.stderr)
    assert only.split(",")[0] + " " in done.stdout
    assert '"median_s": ' in (tmp_path / "runs.json").read_text()
    compared = program("validate", "--cases", table, *(word for bar in bars for word in ("--bar", bar)))
    assert compared.returncode == 0, compared.stdout
