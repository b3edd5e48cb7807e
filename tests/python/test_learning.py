"""Stacks that are learned from runs, and predictions with them."""

import foretrain
import pytest

HEADER = (
    "case,cluster.node,cluster.nodes,workload.train.model,workload.train.global_batch,workload.train.micro_batch,"
    "measured.tokens_per_second_per_gpu\n"
)


def runs(count):
    """Steps of GPT-2, each slower than a tuned one by some factor."""
    rows = [(f"run-{i}", 1 + i % 2, 64 * (1 + 3 * (i % 2)), 1 + 3 * (i % 2), 4000 + 100 * i) for i in range(count)]
    return HEADER + "".join(f"{n},dgx-a100-80gb,{nodes},gpt2,{batch},{micro},{rate}\n" for n, nodes, batch, micro, rate in rows)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(runs(8) + "bad,dgx-a100-80gb,1,gpt-2000,64,1,5000\n")
    return path


@pytest.fixture
def stack(table):
    return foretrain.learn(table)


def test_a_stack_is_the_programs(table, stack, program, program_json, tmp_path):
    program("learn", str(table), "-o", str(tmp_path / "program.yaml"))
    stack.save(tmp_path / "own.yaml")
    assert (tmp_path / "own.yaml").read_text() == stack.text == str(stack) == (tmp_path / "program.yaml").read_text()
    assert stack.to_dict() == program_json("learn", str(table))


def test_a_stack_says_what_it_learned_how_well_and_what_it_could_not_use(stack):
    learned = {one.name: one for one in stack.parameters if one.learned}
    assert learned and all(one.low <= one.value <= one.high for one in learned.values())
    assert stack.errors.fitted.mean < stack.errors.assumed.mean
    assert set(stack.errors) == {"assumed", "fitted", "left_out", "other_scales"}
    assert [row.case for row in stack.failed] == ["bad"] and "gpt-2000" in stack.failed[0].why


def test_the_base_is_a_trainers(table):
    assert foretrain.learn(table, base="megatron").base == "megatron"
    with pytest.raises(foretrain.ForetrainError, match="nobody"):
        foretrain.learn(table, base="nobody")


def test_too_few_runs_are_refused(tmp_path):
    few = tmp_path / "few.csv"
    few.write_text(runs(4))
    with pytest.raises(foretrain.UsageError, match="at least 5"):
        foretrain.learn(few)


def test_rows_are_a_frame_whose_errors_are_those_of_the_validation(table, stack, tmp_path):
    pytest.importorskip("pandas")
    frame = stack.to_frame()
    assert list(frame["case"]) == [f"run-{i}" for i in range(8)]
    good = tmp_path / "good.csv"
    good.write_text(runs(8))
    # The file rounds its numbers to three digits.
    errors = foretrain.validate(good, fidelity="estimate", stack=stack).to_frame()["error"]
    assert list(errors) == pytest.approx(list(frame["error"]), abs=0.01)


def test_a_learned_stack_predicts_as_its_file_does_and_is_called_by_its_name(stack, program_json, tmp_path):
    file = tmp_path / "stack.yaml"
    stack.save(file)

    def named(answer):
        return answer.to_json().replace(str(file), "<stack>")

    small, estimate = "gpt2-xl-dgx-a100", {"fidelity": "estimate"}
    own = foretrain.predict(small, stack=stack)
    assert own.to_json() == named(foretrain.predict(small, stack=file))
    assert "stack.yaml" not in own.to_json() + str(own)
    assert own.step_time_s != foretrain.predict(small).step_time_s
    assert foretrain.predict(small, stack=file).to_dict() == program_json("predict", small, "--stack", str(file))
    asked = {"top": 2, "fix": ["tensor", "pipeline", "context", "schedule"], **estimate}
    assert foretrain.plan(small, stack=stack, **asked).to_json() == named(foretrain.plan(small, stack=file, **asked))
    explained = foretrain.explain(small, stack=stack, **estimate)
    assert explained.to_dict() == program_json("explain", small, "--stack", str(file), "--fidelity", "estimate")
    assert foretrain.memory(small, stack=stack).to_json() == named(foretrain.memory(small, stack=file))


def test_a_sweep_with_a_stack_is_the_programs(stack, program, tmp_path):
    pandas = pytest.importorskip("pandas")
    file, table = tmp_path / "stack.yaml", tmp_path / "out.csv"
    stack.save(file)
    frame = foretrain.sweep("gpt2-xl-dgx-a100", {"plan.zero": [0, 1]}, fidelity="estimate", stack=stack)
    options = ["--vary", "plan.zero=0,1", "--fidelity", "estimate", "--stack", str(file)]
    program("sweep", "gpt2-xl-dgx-a100", *options, "-o", str(table))
    written = pandas.read_csv(table)
    assert list(frame.columns) == list(written.columns)
    assert list(frame["predicted.step_time_s"]) == list(written["predicted.step_time_s"])
    assert set(frame["plan.framework"]) == {"<stack>"}


def test_a_stack_that_is_none_is_refused_by_its_name(tmp_path):
    with pytest.raises(foretrain.ScenarioError) as caught:
        foretrain.predict("gpt2-xl-dgx-a100", stack="kind: trainer\nhabit: 1\n")
    assert caught.value.file == "<stack>" and "habit" in str(caught.value)
    with pytest.raises(foretrain.ScenarioError, match="nothing.yaml"):
        foretrain.explain("gpt2-xl-dgx-a100", stack=tmp_path / "nothing.yaml")


def test_the_runs_to_measure_next_are_the_programs(stack, program_json, tmp_path):
    file = tmp_path / "stack.yaml"
    stack.save(file)
    fixed = ["schedule", "offload", "bucket", "context"]
    asked = foretrain.next_runs(file, "gpt2-xl-dgx-a100", budget="8 GPU-hours", fix=fixed)
    options = ["--budget", "8 GPU-hours", *(f"--fix={key}" for key in fixed)]
    assert asked.to_dict() == program_json("learn", "--next", str(file), "gpt2-xl-dgx-a100", *options)
    assert foretrain.next_runs(stack, "gpt2-xl-dgx-a100", budget="8 GPU-hours", fix=fixed).stack == "<stack>"
