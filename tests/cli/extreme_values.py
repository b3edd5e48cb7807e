#!/usr/bin/env python3
"""Gives keys of scenarios the values that nobody means, and looks that each is refused or predicted as finite times.

Usage: tests/cli/extreme_values.py [--every N] [--first K] [--fidelity F,...] PROGRAM [SCENARIO...]
       tests/cli/extreme_values.py --nested [--every N] [--first K] [--fidelity F,...] PROGRAM

Every scenario (default: all of scenarios/runs) is predicted once for each value of each N-th key (default 1), from the
K-th on, by `sweep --cases`, at each of these fidelities (default: estimate). With --nested, keys of lists' entries and of
what has a name get theirs in a scenario that has such entries: each N-th value of all, others at each fidelity. What is wrong is printed: a row that ends by a signal or for lack of memory, a number that is
not finite or negative, parts of a step that are longer than the step, and values that take longer than 60 s."""

import argparse
import csv
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
numbers = ["0", "1", "2", "3", "-1", "0.5", "7", "64", "1e-12", "100000", "1000000", "1e12", "1e300", "9223372036854775808"]
limit = 60  # seconds
passing = re.compile("ended by signal|not enough memory|an error without a text|bad_alloc|std::")


def values_of(kind):
    """Values for a key of this kind, those which fit and those which do not; of numbers with a unit, in it."""
    values = []
    unit = re.search(r"\(([^()]*)\)", kind)
    if unit:
        values += [f"{number} {unit.group(1).split('/cycle')[0]}" for number in numbers]
    if "number" in kind or "size" in kind:
        values += numbers
    if "share" in kind:
        values += ["0", "1", "0.5", "1e-12"]
    if "true or false" in kind:
        values += ["true", "false"]
    if "list" in kind:
        values += ["[]", "[0]", "[1, 2, 3]", "[[[]]]"]
    if " or " in kind and not kind.startswith(("a ", "names")):
        values += [word.strip() for word in re.split(", | or ", kind) if word.strip() and not word.startswith("a ")]
    if "auto" in kind:
        values.append("auto")
    return list(dict.fromkeys(values + ["", "x", "{}"]))


class Tried(dict):
    """The entry of a list whose keys get values that nobody means."""


def task(run, on="gpu0", **more):
    matmul = {"id": "a", "on": "gpu0", "run": {"matmul": {"m": "64", "n": "64", "k": "64", "precision": "fp32"}}}
    return [matmul, Tried(id="b", on=on, run=run, **more)]


def layers(layer, *before):
    return [*before, Tried(layer), "relu", "flatten", {"linear": {"out": "10"}}]


lenet = "{ family: cnn, input: [1, 28, 28], layers: @ }"
convolution = {"conv": {"out": "20", "kernel": "3"}}
call = {"model": "lenet", "batch": "4", "precision": "fp32"}
# Prefix of keys, a scenario that has such entries, the key that is set, what stands around the list, and lists.
nested = [
    ("cluster.faults[].", "sync-multi-ring-8-v100", "cluster.faults", "@",
     [[Tried(node="0", gpu="0", speed="50 %")], [Tried(node="0", link="gpu0>gpu1", bandwidth="10 %")],
      [Tried(node="0", link="gpu0-gpu1", failed="true")]]),
    ("cluster.faults[].", "network-failed-rail", "cluster.faults", "@", [[Tried(node="1", card="0", bandwidth="10 %")]]),
    ("cluster.groups[].", "unequal-h100-beside-a100", "cluster.groups", "@",
     [[{"node": "dgx-h100", "nodes": "4"}, Tried(node="dgx-a100-80gb", nodes="6", gpus_per_node="8")]]),
    ("cluster.node.wiring[].", "sync-ring-8-v100", "cluster.node.wiring", "@",
     [[{"between": f"[gpu{2 * i}..gpu{2 * i + 1}, plx{i}]", "link": "pcie3-x16"} for i in range(4)] +
      [{"between": f"[plx{2 * i}..plx{2 * i + 1}, cpu{i}]", "link": "pcie3-x16"} for i in range(2)] +
      [Tried(between="[cpu0, cpu1]", link="qpi", count="2")]]),
    ("background[].", "contention-one-link-of-a-ring", "background", "@", [[Tried({"from": "node3", "to": "node4"})]]),
    ("jobs[].", "contention-two-trainings", "jobs", "@", [[Tried(scenario="gpt2-xl-dgx-a100", nodes="[1, 3]")]]),
    ("workload.train.model.layers[].", "data-parallel-lenet-two-gpus", "workload.train.model", lenet,
     [layers(convolution), layers({"max_pool": {"kernel": "2", "stride": "2"}}, convolution),
      layers({"average_pool": {"kernel": "2", "stride": "2"}}), layers({"dropout": "0.5"}),
      layers({"linear": {"out": "64"}}, "flatten"), layers({"residual": {"body": [convolution], "shortcut": [convolution]}}),
      layers({"branches": [[convolution], [convolution]]}), layers({"repeat": {"times": "2", "body": ["relu"]}})]),
    ("workload.tasks[].", "overlap-compute-and-copy", "workload.tasks", "@",
     [task({"matmul": {"m": "64", "n": "64", "k": "64", "precision": "fp32"}, "repeat": "2"}, after="a"),
      task({"copy": {"from": "gpu0", "to": "cpu", "size": "64 MB", "pinned": "true"}}, "gpu0:d2h", after="[a]"),
      task({"page_lock": {"size": "64 MB"}}, "cpu"), task({"sleep": "1 ms"}, "cpu"),
      task({"forward": call}), task({"forward_backward": call}, enqueued_by="cpu"), task({"item": {"from": "gpu0"}}, "cpu"),
      task({"print": {"from": "gpu0", "size": "1 MB"}}, "cpu"), [Tried(id="l", loop="3", tasks=task("a")[:1])]]),
    ("cluster.node.cpu.hierarchy.caches.L1", "hierarchy-l1", "cluster.node.cpu.hierarchy.caches.L1", None, []),
    ("cluster.node.cpu.hierarchy.caches.L2", "hierarchy-l2", "cluster.node.cpu.hierarchy.caches.L2", None, []),
    ("cluster.node.cpu.hierarchy.caches.L3", "hierarchy-l3", "cluster.node.cpu.hierarchy.caches.L3", None, []),
    ("cluster.node.link_types.NAME.", "sync-multi-ring-8-v100", "cluster.node.link_types.nvlink2.", None, []),
    ("cluster.node.sources.NAME.", "sync-multi-ring-8-v100", "cluster.node.sources.default.", None, []),
]
plain = ["name", "description", "cluster", "workload", "plan", "background", "jobs", "calibration", "assumed"]


def flow(node):
    """As YAML in one line; texts as they are."""
    if isinstance(node, dict):
        return "{ " + ", ".join(f"{key}: {flow(value)}" for key, value in node.items()) + " }"
    return "[ " + ", ".join(map(flow, node)) + " ]" if isinstance(node, list) else node


def changed(entry, path, value):
    """The entry with a value at this path; nothing where it has no place for it."""
    if not path:
        return value
    if not isinstance(entry, dict) or (len(path) > 1 and path[0] not in entry):
        return None
    inner = changed(entry.get(path[0]), path[1:], value)
    return None if inner is None else {**entry, path[0]: inner}


def nested_rows(key):
    """Ways of putting values of the key into scenarios: base, the key that is set, and to what."""
    rows = []
    for begin, base, holder, around, lists in nested:
        if not key["key"].startswith(begin):
            continue
        rest = key["key"][len(begin):]
        rows += [(base, holder + rest, value) for value in values_of(key["value"]) if around is None]
        for entries in lists:
            for value in values_of(key["value"]):
                new = [changed(e, rest.split("."), value) if isinstance(e, Tried) else e for e in entries]
                if None not in new:
                    rows.append((base, holder, around.replace("@", flow(new))))
    if key["key"] in plain:
        rows += [("sync-multi-ring-8-v100", key["key"], value) for value in values_of(key["value"])]
    return rows


def flat_rows(key, base):
    return [(base, key["key"], value) for value in values_of(key["value"])]


def table_of(cells):
    """A table of cases of which each sets one key."""
    names = list(dict.fromkeys(name for _, name, _ in cells))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "base", *names])
    for i, (base, name, value) in enumerate(cells):
        writer.writerow([f"{i}: {name}={value}", base, *(value if other == name else "" for other in names)])
    return text.getvalue()


def faults(row):
    error = row["predicted.error"]
    if error:
        if passing.search(error):
            yield error
        return
    step = 0.0
    for name, cell in row.items():
        if not name.startswith("predicted.") or cell == "":
            continue
        try:
            value = float(cell)
        except ValueError:
            continue
        if not math.isfinite(value) or value < 0.0:
            yield f"{name} is {cell}"
        if name in ("predicted.step_time_s", "predicted.time_s"):
            step = max(step, value)
    for name in ("compute", "exposed_communication", "pipeline_bubble", "data_stall", "host_overhead", "optimizer"):
        part = row.get(f"predicted.{name}_s") or "0"
        if float(part) > step * (1 + 1e-6) + 1e-12 and step > 0.0:
            yield f"{name} takes {part} s of {step} s"


def check(program, what, cells, fidelity):
    """Errors of the rows; a slow sweep is halved until its rows are known."""
    with tempfile.TemporaryDirectory() as folder:
        cases, out = pathlib.Path(folder, "cases.csv"), pathlib.Path(folder, "out.csv")
        cases.write_text(table_of(cells))
        try:
            run = subprocess.run([program, "sweep", "--cases", cases, "--fidelity", fidelity, "-o", out], timeout=limit,
                                 capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            if len(cells) == 1:
                return [f"{what}, {fidelity}: {' '.join(cells[0])} takes longer than {limit} s"]
            half = len(cells) // 2
            return [fault for part in (cells[:half], cells[half:]) for fault in check(program, what, part, fidelity)]
        if not out.exists():
            return [f"{what}: exit status {run.returncode}: {run.stderr.strip()[:1000]}"]
        found = [f"{row['case']} of {row['base']}, {fidelity}: {fault}" for row in csv.DictReader(out.open())
                 for fault in faults(row)]
    if run.returncode not in (0, 1):
        found.append(f"{what}: exit status {run.returncode}: {run.stderr.strip()[:1000]}")
    return found


def works_of(options, keys):
    """Names and rows of what is tried."""
    flat = [key for key in keys if re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", key["key"])]
    if options.nested:
        rows = {key["key"]: nested_rows(key) for key in keys if key not in flat}
        for key in (key for key, cells in rows.items() if not cells):
            sys.exit(f"{key}: no entry of the list `nested` has a place for it")
        yield "keys of entries and names", sum(rows.values(), [])
        return
    scenarios = options.scenario or sorted(path.stem for path in (root / "scenarios/runs").glob("*.yaml"))
    for i, scenario in enumerate(scenarios):
        own = flat[(options.first + i) % options.every::options.every]
        yield scenario, [row for key in own for row in flat_rows(key, scenario)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--fidelity", default="estimate")
    parser.add_argument("program")
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    every_key = json.loads(subprocess.run([options.program, "keys", "--json"], capture_output=True, check=True).stdout)
    rows, found = 0, []
    for what, all_cells in works_of(options, [key for key in every_key if key["file"] == "scenario"]):
        for i, fidelity in enumerate(options.fidelity.split(",")):
            cells = all_cells[(options.first + i) % options.every::options.every] if options.nested else all_cells
            faults_here = check(options.program, what, cells, fidelity)
            rows += len(cells)
            found += faults_here
            print(f"{what}: {len(cells)} rows, {len(faults_here)} faults", flush=True)
            for fault in faults_here[:20]:
                print(f"  {fault}", flush=True)
    print(f"{rows} rows, {len(found)} faults")
    sys.exit(1 if found else 0)


main()
