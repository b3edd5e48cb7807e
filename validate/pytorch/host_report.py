#!/usr/bin/env python3
"""Of measured training between hosts what `foretrain validate` does not say: which of two plans is faster, waiting for
others, staleness.

    python3 validate/pytorch/host_report.py CASES.csv [--foretrain build/foretrain]
"""

import argparse
import collections
import csv
import itertools
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

UNITS = {"s": 1.0, "ms": 1e-3, "B": 1.0, "": 1.0}


def number(text):
    value, _, unit = (text or "").partition(" ")
    return float(value) * UNITS[unit] if value else None


def predicted(table, foretrain):
    """The table's rows with the predicted.* columns of `foretrain sweep`."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.csv")
        subprocess.run([foretrain, "sweep", "--cases", table, "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
        with open(out, newline="") as lines:
            rows = list(csv.DictReader(lines))
    for row in rows:
        if row["predicted.error"]:
            sys.exit(f"{row['case']}: {row['predicted.error']}")
    return rows


def of_scenario(row, foretrain, command, *options):
    """Output of `foretrain COMMAND` for the row's scenario."""
    keys = [key for key in row if key.split(".")[0] in ("cluster", "workload", "plan", "background") and row[key]]
    changes = [word for key in keys for word in ("--set", f"{key}={row[key]}")]
    said = subprocess.run([foretrain, command, row["base"], *options, *changes], check=True, capture_output=True,
                          text=True)
    return said.stdout


def staleness(row, foretrain):
    """Mean predicted staleness, which tables do not hold."""
    told = json.loads(of_scenario(row, foretrain, "predict", "--json"))
    told = told[0] if isinstance(told, list) else told
    return told["parameter_server"]["staleness"]["mean"]


def waiting(row, foretrain):
    """Seconds of the step in which the first rank computes nothing, whose waiting was measured."""
    if int(row.get("plan.pipeline") or 1) == 1:
        return number(row["predicted.exposed_communication_s"]) + number(row["predicted.pipeline_bubble_s"])
    # A table says it of the stage with the most work, which is not the first one.
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "trace.json")
        of_scenario(row, foretrain, "timeline", "-o", str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    computed = sum(event["dur"] for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) == (1, 1)
                   and event["cat"] != "communication")
    return number(row["predicted.step_time_s"]) - computed * 1e-6


def line(name, errors, note=""):
    if errors:
        print(f"  {name:34} {len(errors):4}  {statistics.mean(map(abs, errors)):7.1%}  {statistics.mean(errors):+7.1%}  "
              f"{max(errors, key=abs):+7.1%}  {note}")


def samples(row):
    """Of a step; the batch of one GPU each where no other is said."""
    return int(row["workload.train.global_batch"] or int(row["workload.train.micro_batch"]) * int(row["plan.data"]))


def setting(row):
    """Properties that rival plans share: model, hosts and disturbances."""
    keys = ["cluster.network.nic_bandwidth", "cluster.network.fabric", "cluster.faults", "background",
            "workload.train.data", "workload.train.freeze", "workload.train.lora", "workload.train.recompute",
            "plan.sync.compression", "plan.sync.consistency", "replay.core"]
    # Skewed experts are another model; servers beside the workers take hosts of their own.
    return (row["workload.train.model"], row["cluster.nodes"] if "parallel" in row["base"] else row["plan.data"]) + tuple(
        row.get(key, "") for key in keys)


def pairs(rows):
    """The faster of two plans, a sample, where they differ by more than 5 %."""
    rivals = collections.defaultdict(list)
    for row in rows:
        rivals[setting(row)].append(row)
    right, wrong = 0, []
    for members in rivals.values():
        for a, b in itertools.combinations(members, 2):
            m, p = (number(a[key]) / samples(a) / (number(b[key]) / samples(b))
                    for key in ("measured.step_time", "predicted.step_time_s"))
            if abs(math.log(m)) <= math.log(1.05):
                continue
            right += (m > 1.0) == (p > 1.0)
            if (m > 1.0) != (p > 1.0):
                wrong.append(f"{a['case']} {b['case']} {m:.2f} {p:.2f}")
    print(f"the faster of two plans: {right} of {right + len(wrong)} pairs right", *wrong, sep="\n  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--foretrain", default="build/foretrain")
    options = parser.parse_args()
    rows = predicted(options.table, options.foretrain)
    timed = [row for row in rows if row["measured.step_time"]]
    pairs(timed)
    print("of the step                             n    error     bias    worst")
    waited = collections.defaultdict(list)
    for row in timed:
        if row.get("replay.exposed") and "slow core" not in row["replay.way"]:  # whose others wait for it, not for cards
            error = (waiting(row, options.foretrain) - number(row["replay.exposed"])) / number(row["measured.step_time"])
            waited[row["group"]].append((error, row["case"]))
    for group, errors in waited.items():
        line(group + ": waiting", [e for e, _ in errors],
             f"{sum(abs(e) > 0.15 for e, _ in errors)} beyond 15 %; {max(errors, key=lambda e: abs(e[0]))[1]}")
    stale = []
    for row in timed:
        if row.get("replay.staleness"):
            told, seen = staleness(row, options.foretrain), number(row["replay.staleness"])
            stale.append(told / seen - 1.0)
            print(f"  {row['case']:58} staleness {seen:5.2f}, predicted {told:5.2f} ({stale[-1]:+.0%})")
    line("mean staleness", stale, f"{sum(abs(e) > 0.15 for e in stale)} beyond 15 %")


if __name__ == "__main__":
    main()
