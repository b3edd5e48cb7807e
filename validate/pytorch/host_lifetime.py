"""Whole trainings that are saved to a file server and go on after workers have died: how long they take.

Measured by host_steps.py --lifetime: hosts are network namespaces with cards of stated rates (host_lab.py), processes train with PyTorch
2.6 and Gloo. One host more is the file server, whose card's rate is that of the storage. Each rank saves its part of
the weights every so many steps, and waits for it or not. A worker is killed after each of the stated times (ten from
equal parts of the exponential distribution, in a fixed disorder, so that their mean is the stated one); the supervisor
sees nothing but missing signs of life, then ends all processes and starts them from the last step that all had saved.
What starting processes and joining them takes is read from the runs in which nobody dies.
"""

import json
import math
import pathlib
import queue
import random
import statistics
import subprocess
import sys
import threading
import time

import host_lab
from host_cases import SHARES, USUAL
from host_table import scenario_cells, source_of, speed_of, write_rows

PROCESS = pathlib.Path(__file__).with_name("host_lifetime_process.py")
PAYLOAD = host_lab.PAYLOAD / (host_lab.PAYLOAD + host_lab.HEADER)
LONGEST_S = 600
MISSED = 3
RATE = 1000  # Mbit/s of the hosts' cards


def designed_cases():
    cases = []

    def add(models, workers, steps, **rest):
        for model in models.split():
            share, hosts = SHARES[workers]
            case = dict(USUAL, kind="lifetime", model=model, batch=2, data=workers, workers=workers, rate=RATE,
                        share=share, hosts=hosts, steps=steps, every=0, mode="synchronous", storage=0, heartbeat=0.5,
                        between=0)
            case.update(rest)
            words = [model, f"data{workers}", f"steps{steps}"]
            words += [f"every{case['every']}", case["mode"], str(case["storage"])] if case["every"] else []
            words += [f"deaths{case['between']}"] if case["between"] else []
            case["name"] = "-".join(words)
            cases.append(case)

    both = "gpt-tall llama-tall"
    add(both, 2, 24)
    for mode in ("synchronous", "asynchronous"):
        for storage in (100, 200, 500):
            add(both, 2, 24, every=4, mode=mode, storage=storage)
    add("gpt-tall", 2, 24, every=2, mode="synchronous", storage=500)
    add("gpt-tall", 2, 24, every=8, mode="asynchronous", storage=200)
    add("llama-tall", 4, 12)
    for mode in ("synchronous", "asynchronous"):
        add("llama-tall", 4, 12, every=3, mode=mode, storage=200)
    for mode in ("synchronous", "asynchronous"):
        add(both, 2, 60, every=4, mode=mode, storage=500, between=15)
    add("llama-tall", 2, 60, every=10, storage=500, between=20)
    add("gpt-tall", 2, 60, every=2, storage=500, between=20)
    return cases


def times_between(mean, seed):
    """Ten of the exponential distribution, over and over."""
    quantiles = [-mean * math.log1p(-(i + 0.5) / 10) for i in range(10)]
    longer = mean / statistics.mean(quantiles)  # the last tenth's mean lies beyond its middle
    while True:
        random.Random(seed).shuffle(quantiles)
        seed += 1
        yield from (longer * quantile for quantile in quantiles)


class Start:
    """One start of all worker processes, and what these have said since."""

    def __init__(self, lab, case, number, lasting, server):
        self.case, self.begun, self.lasting, self.step = case, time.monotonic(), lasting, lasting
        self.words, self.signs, self.moments, self.saved, self.probes = queue.Queue(), {}, {}, {}, []
        told = json.dumps(dict(case, port=31000 + number, server=host_lab.address(server), start=lasting))
        self.processes = [begin(lab, rank, ["worker", told], RANK=str(rank)) for rank in range(case["workers"])]
        for rank, process in enumerate(self.processes):
            threading.Thread(target=self.listen, args=(rank, process), daemon=True).start()

    def listen(self, rank, process):
        for line in process.stdout:
            self.words.put((time.monotonic(), rank, *line.split(maxsplit=1)))

    def hear(self, seconds):
        """Text received so far, or within this time."""
        try:
            self.take(*self.words.get(timeout=seconds))
            while True:
                self.take(*self.words.get_nowait())
        except queue.Empty:
            pass

    def take(self, moment, rank, word, rest=""):
        if word == ".":
            self.signs[rank] = moment
        elif word == "step":
            self.step = int(rest)
        elif word == "saved":  # by all ranks: a step to go on from
            ranks = self.saved.setdefault(int(rest), set())
            ranks.add(rank)
            if len(ranks) == self.case["workers"]:
                self.lasting = max(self.lasting, int(rest))
        elif word == "probe":
            self.probes.append(json.loads(rest))
        else:
            self.moments.setdefault(word, {})[rank] = moment

    def when(self, word):
        """All workers had said it; nothing before."""
        said = self.moments.get(word, {})
        return max(said.values()) if len(said) == self.case["workers"] else None

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.hear(0.1)


def begin(lab, host, words, held=True, **more):
    return lab.start(host, [sys.executable, str(PROCESS)] + words, held, env=host_lab.of_training(**more), text=True,
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)


def dead(start, case, victim):
    """The supervisor has missed the signs of life of a killed worker; one that had not begun would have begun now."""
    process, killed = victim
    start.hear(0.01)
    last = start.signs.get(process, killed - case["heartbeat"] / 2)
    return time.monotonic() > last + MISSED * case["heartbeat"]


def trained(lab, case):
    """A whole training: its length from the first step on, without what starting it took, and what happened in it."""
    waits, chosen = times_between(case["between"], 7) if case["between"] else None, random.Random(11)
    start, starts, done_again, first, death = Start(lab, case, 0, 0, case["workers"]), 1, 0, None, None
    latest = time.monotonic() + LONGEST_S
    try:
        while len(start.probes) < case["workers"]:
            start.hear(0.02)
            if time.monotonic() > latest:
                raise RuntimeError(f"not done within {LONGEST_S} s")
            if first is None and start.when("ready"):
                first = start.when("ready")
                began = dict(start_s=first - start.begun - start.when("joined") + start.when("up"),
                             initialise_s=start.when("joined") - start.when("up"))
                death = first + next(waits) if waits else None
            if death is None or time.monotonic() < death or start.when("done"):
                continue
            victim = chosen.randrange(case["workers"]), time.monotonic()
            start.processes[victim[0]].kill()
            while not dead(start, case, victim):
                pass
            death = time.monotonic() + next(waits)
            start.end()
            done_again += start.step - start.lasting
            start = Start(lab, case, starts, start.lasting, case["workers"])
            starts += 1
        return dict(began, length_s=start.when("done") - first, deaths=starts - 1, done_again=done_again,
                    probes=start.probes)
    finally:
        start.end()


def measured_run(case):
    lab = host_lab.Lab(case["workers"] + 1)
    server = None
    try:
        storage = case["storage"] or RATE
        lab.shape([(case["rate"],) * 2] * case["workers"] + [(storage,) * 2])
        lab.hold([case["share"]] * case["workers"] + [1.0])
        server = begin(lab, case["workers"], ["server"], held=False)
        server.stdout.readline()
        result = {key: value for key, value in case.items() if value != USUAL.get(key, "none")}
        before = host_lab.busy_seconds([])[0], time.monotonic()
        result.update(trained(lab, case))
        result["cores_busy"] = round((host_lab.busy_seconds([])[0] - before[0]) / (time.monotonic() - before[1]), 3)
        return result
    finally:
        if server:
            server.kill()
            server.wait()
        lab.close()


def cells(run, speed, start, initialise):
    """Those of a model that is divided, and what happens to its training."""
    case = dict(USUAL, **run)
    kind = "deaths" if case["between"] else "checkpoints" if case["every"] else "lengths"
    result = scenario_cells(case, round(case["share"] * speed, 3))
    result.update({"group": f"hosts-{kind}",
                   "workload.train.samples": f"{case['steps'] * case['batch'] * case['data']} samples",
                   "measured.time_to_train": f"{case['length_s']:.3f} s", "replay.deaths": case["deaths"],
                   "replay.done_again": case["done_again"]})
    if case["every"]:
        rate = f"{case['storage'] / 8 * PAYLOAD:.2f} MB/s"
        storage = (f"{{ kind: network, read_bandwidth: {rate}, stream_bandwidth: {rate}, link_bandwidth: {rate}, "
                   "random_read_iops: 10000, read_latency: 100 us, round_trip: 100 us, round_trips_per_open: 1, "
                   "read_ahead: 1 MiB }")
        result["workload.train.checkpoint"] = (f"{{ every: {case['every']}, mode: {case['mode']}, "
                                               f"storage: {storage} }}")
    if case["between"]:
        between = case["between"] * case["workers"] / 3600
        result["cluster.failures"] = f"{{ software: {between:.6f} h }}"
        result["workload.train.recovery"] = (f"{{ heartbeat: {case['heartbeat']} s, missed: {MISSED}, "
                                             f"start: {start:.2f} s, initialise: {initialise * 1e3:.0f} ms }}")
    return result


def write_table(path, measured):
    reference = measured["machine"].get("operators_ms")
    runs = sorted(measured["runs"], key=lambda run: (run["between"] > 0, run["every"] > 0, run["name"]))
    speed = speed_of(runs, reference)
    undisturbed = [run for run in runs if not run["between"] and run["workers"] == 2]
    if not undisturbed:
        raise RuntimeError("what starting processes takes is not known: no run in which nobody dies was measured")
    start, initialise = (statistics.median(run[key] for run in undisturbed) for key in ("start_s", "initialise_s"))
    source = source_of("host_lifetime.py", measured["machine"])
    write_rows(path, [dict(cells(run, speed, start, initialise), source=source) for run in runs])


class Lifetimes:
    """Runs cases as host_steps.py asks for them."""

    kind = "host lifetimes"
    designed, run, write_table = staticmethod(designed_cases), staticmethod(measured_run), staticmethod(write_table)

    @staticmethod
    def versions():
        import torch
        return {"torch": torch.__version__}

    @staticmethod
    def said(run):
        return f"{run['length_s']:8.1f} s  {run['deaths']} deaths, {run['done_again']} steps again"

    def close(self):
        pass
