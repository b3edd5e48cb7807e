#!/usr/bin/env python3
"""Steps between hosts with one planted cause each, and whether `foretrain diagnose` names it first.

    validate/host_replay/planted.py -o MEASUREMENTS.json | --from MEASUREMENTS.json [--foretrain build/foretrain]

`foretrain replay` runs the steps by real processes over shaped cards (needs root); --from takes what it measured before.
Computing, loading and saving let their time pass there; messages are real. Each run becomes a training log and a trace
per rank, as Megatron-LM and torch.profiler write them; the scenario says nothing of the cause. The file kept in validate/measurements lacks `tasks`. Exit status 1: fewer than seven of eight causes are first, or a size is off by over 25 %.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

MODEL = "{{ preset: gpt2, layers: {}, hidden: {}, heads: 8, vocabulary: 4096, sequence: 128, tied_embeddings: false }}"
USUAL = {"cluster.node": "host-veth", "cluster.nodes": 4, "cluster.network.nic_bandwidth": "250 Mbit/s",
         "workload.train.model": MODEL.format(8, 256), "workload.train.micro_batch": 12,
         "workload.train.global_batch": 48, "plan.data": 4, "plan.sync.bucket": "4 MB"}
SMALL_LAYERS = {"cluster.nodes": 8, "plan.data": 8, "workload.train.global_batch": 8, "workload.train.micro_batch": 1,
                "workload.train.model": MODEL.format(48, 32), "plan.sync.overlap": "false", "plan.sync.bucket": "25 MB"}
EVERY = 2  # steps between checkpoints, each of 1.69 s: 33.8 MB, a quarter a host, at 5 MB/s
TRAFFIC = """import random, socket, sys, time
if sys.argv[1] == "take":
    listening = socket.create_server(("", 29600))
    while True:
        taken = listening.accept()[0]
        while taken.recv(1 << 18): pass
time.sleep(1)
while True:
    sent, end = socket.create_connection((sys.argv[1], 29600)), time.time() + random.uniform(2, 6)
    while time.time() < end: sent.sendall(bytes(1 << 18))
    sent.close()
    time.sleep(random.uniform(2, 6))
"""
# Cause, what plants it, what else differs from USUAL, and the size: the remaining
# share of a speed, or a mean step's pause in seconds. Traffic takes half of a card for half of the time.
PLANTED = [
    ("slow or oversubscribed uplink", {"cluster.network.fabric": "{ kind: fat_tree, nodes_per_leaf: 2, oversubscription: 4 }"},
     {}, 0.5),
    ("one slow NIC", {"cluster.faults": "[{ node: 0, card: 0, bandwidth: 30 % }]"}, {}, 0.3),
    ("one slow GPU", {"cluster.faults": "[{ node: 3, gpu: 0, speed: 50 % }]"}, {}, 0.5),
    ("others' traffic", {"replay.repetitions": 15}, {}, 0.75),
    ("no overlap of gradients", {"plan.sync.overlap": "false"}, {}, None),
    ("small gradient buckets", {"plan.sync.bucket": "50 kB"}, SMALL_LAYERS, None),
    ("data loader too slow", {"workload.train.loader": "{ workers: 1, per_sample: 300 ms, pinned: true, non_blocking: "
                              "true, persistent: true }"}, {}, 0.649),
    ("waiting for checkpoints", {"workload.train.checkpoint": f"{{ every: {EVERY}, mode: synchronous, storage: {{ kind: "
                                 "flash, read_bandwidth: 5 MB/s, write_bandwidth: 5 MB/s, read_latency: 1 us, "
                                 "write_latency: 1 us, random_read_iops: 1000, random_write_iops: 1000 } }"}, {}, 0.845)]


def traffic_beside(replay):
    """Processes that send from the first host of a replay to its last, in bursts."""
    names = []
    while replay.poll() is None and len(names) < 5:  # its switch, then its hosts
        time.sleep(0.2)
        names = sorted((path.name for path in pathlib.Path("/run/netns").glob(f"foretrain-{replay.pid}-*")),
                       key=lambda name: int(name.split("-")[2]))
    words = {4: "take", 1: "10.77.0.4"} if len(names) == 5 else {}
    return [subprocess.Popen(["ip", "netns", "exec", names[host], sys.executable, "-c", TRAFFIC, word],
                             stderr=subprocess.DEVNULL) for host, word in words.items()]


def measure(output, foretrain):
    with tempfile.TemporaryDirectory() as folder:
        for cause, planted, other, _ in PLANTED:
            cells = {"case": cause, "base": "data-parallel-hosts", "replay.timeline": 1, "replay.repetitions": 7,
                     **USUAL, **other, **planted}
            table = pathlib.Path(folder) / "planted.csv"
            with table.open("w") as file:
                csv.writer(file).writerows([cells.keys(), cells.values()])
            replay = subprocess.Popen([foretrain, "replay", "--cases", table, "-o", output])
            beside = traffic_beside(replay) if cause == "others' traffic" else []
            status = replay.wait()
            for process in beside:
                process.kill()
            if status:
                sys.exit(f"{cause}: the replay ended with status {status}")


def log_of(run, saves):
    """Lines of Megatron-LM; steps that begin with a checkpoint are those that the replay let begin so."""
    lines = []
    for number, seconds in enumerate(run["samples"]):
        if saves and number and number % EVERY == 0:
            lines.append(f"saving checkpoint at iteration {number:7d} to checkpoints in torch_dist format")
        lines.append(f" iteration {number + 1:8d}/{len(run['samples']):8d} | elapsed time per iteration (ms): "
                     f"{seconds * 1e3:.1f} |")
    return "\n".join(lines) + "\n"


def trace_of(run, rank):
    """A rank's step as kernels of a GPU, launched in time, and what it waits for its loader."""
    tasks = [task[1:] for task in run["rank_tasks"] if task[0] == rank]
    ranks, loads = run["ranks"], [task for task in tasks if task[1] == "data"]
    tasks = [task for task in tasks if task[1] != "data"]
    end = max(task[4] for task in tasks)
    events = [("user_annotation", "ProfilerStep#1", 0.0, max([end] + [load[4] for load in loads]), {})]
    events += [("user_annotation", "DataLoader.__next__", end, load[4], {}) for load in loads if load[4] > end]
    for number, (name, category, sent, start, stop) in enumerate(tasks):
        if category == "host" or stop <= start:
            continue
        words = {"correlation": number}
        if category == "communication":
            numbers = round(sent * ranks / (2 * (ranks - 1)) / 4)
            words.update({"Collective name": "allreduce", "In msg nelems": numbers, "Out msg nelems": numbers,
                          "dtype": "Float", "Group size": ranks, "Process Group Name": "0"})
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        elif category == "optimizer":
            name = "multi_tensor_apply_kernel optimizer sgd"
        events.append(("cuda_runtime", "cudaLaunchKernel", 0.0, 0.0, {"correlation": number}))
        events.append(("kernel", "gemm " + name if category == "compute" else name, start, stop, words))
    return json.dumps({"traceEvents": [
        {"ph": "X", "cat": kind, "name": name, "ts": start * 1e6, "dur": (stop - start) * 1e6, "args": words}
        for kind, name, start, stop, words in events]})


def diagnose(run, cause, other, folder, foretrain):
    log, traces = folder / "train.log", [folder / f"rank{rank}.json" for rank in range(run["ranks"])]
    log.write_text(log_of(run, cause == "waiting for checkpoints"))
    for rank, trace in enumerate(traces):
        trace.write_text(trace_of(run, rank))
    settings = [text for key, value in {**USUAL, **other}.items() for text in ("--set", f"{key}={value}")]
    command = [foretrain, "diagnose", "data-parallel-hosts", "--log", log, "--trace", *traces, "--json", *settings]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    files = options.add_mutually_exclusive_group(required=True)
    files.add_argument("-o", dest="output")
    files.add_argument("--from", dest="kept")
    options.add_argument("--foretrain", default="build/foretrain")
    given = options.parse_args()
    if given.output:
        measure(given.output, given.foretrain)
    runs = {run["case"]: run for run in json.load(open(given.kept or given.output))["runs"]}
    first, sizes = 0, True
    for cause, _, other, share in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            found = diagnose(runs[cause], cause, other, pathlib.Path(folder), given.foretrain)
        names = [one["name"] for one in found["causes"]]
        place = names.index(cause) + 1 if cause in names else None
        first += place == 1
        one = found["causes"][place - 1] if place else {}
        size = one.get("pause_s", one.get("size"))
        fits = share is None or (size is not None and abs(size / share - 1) <= 0.25)
        sizes = sizes and fits
        print(f"{cause:32} place {place}, size {size and round(size, 3)} of {share}, step {found['measured_s']:.3f} s, expected "
              f"{found['expected_s']:.3f} s" + ("" if place == 1 else f", first: {names[:2]}"))
    print(f"first: {first} of {len(PLANTED)}")
    return 0 if first >= 7 and sizes else 1


if __name__ == "__main__":
    sys.exit(main())
