"""Errors say where and what would be right; nothing hangs."""

import os
import signal
import threading
import time

import foretrain
import pytest

TEXT = "cluster:\n  node: dgx-a100-80gb\n  gpu_per_node: 2\nworkload: { train: { model: gpt2 } }\n"


def test_an_error_has_its_position_and_its_remedy():
    with pytest.raises(foretrain.ScenarioError) as caught:
        foretrain.predict(TEXT)
    error = caught.value
    assert (error.file, error.line, error.column, error.key) == ("<scenario>", 3, 3, "cluster.gpu_per_node")
    assert (error.problem, error.remedy) == ("unknown key", "did you mean cluster.gpus_per_node?")
    assert str(error) == "<scenario>:3:3: cluster.gpu_per_node: unknown key; did you mean cluster.gpus_per_node?"
    assert isinstance(error, ValueError) and isinstance(error, foretrain.ForetrainError)


def test_an_error_of_a_file_names_the_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    for predict in (foretrain.predict, foretrain.explain, foretrain.plan):
        with pytest.raises(foretrain.ScenarioError) as caught:
            predict(file)
        assert (caught.value.file, caught.value.line, caught.value.key) == (str(file), 3, "cluster.gpu_per_node")


def test_wrong_arguments_are_usage_errors():
    with pytest.raises(foretrain.UsageError, match="write estimate, flows or steps"):
        foretrain.predict("sync-ring-4", "exact")
    with pytest.raises(foretrain.UsageError, match="subcommand"):
        foretrain.command("frobnicate")
    with pytest.raises(foretrain.UsageError, match="time, cost, energy or memory"):
        foretrain.plan("gpt2-xl-dgx-a100", objective="beauty")


def test_a_missing_scenario_has_the_nearest_name():
    with pytest.raises(foretrain.ScenarioError, match="did you mean gpt2-xl-dgx-a100"):
        foretrain.predict("gpt2-xl-dgx-a10")


def test_other_threads_run_while_it_computes():
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    started = time.monotonic()
    foretrain.predict("failures-goodput-llama3-405b")  # half a second and more
    seconds = time.monotonic() - started
    done.set()
    counter.join()
    # A thread that holds the interpreter would have let it count once or twice.
    assert counted > 20 * seconds


def test_several_threads_get_the_results_of_one(small):
    names = ["sync-ring-4", "gpt2-xl-dgx-a100", "contention-two-jobs-one-uplink", "servers-one-server"]
    alone = [foretrain.predict(name).to_json() for name in names]
    together = [""] * len(names)

    def predict(index):
        together[index] = foretrain.predict(names[index]).to_json()

    threads = [threading.Thread(target=predict, args=(index,)) for index in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_an_interrupt_ends_a_search():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        foretrain.plan("deepseek-v3-2048-h800")  # a minute
        time.sleep(1)
    assert time.monotonic() - started < 30
    assert foretrain.predict("sync-ring-4").chosen_algorithm == "ring"
