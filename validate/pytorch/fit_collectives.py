#!/usr/bin/env python3
"""Processor cost of a Gloo message, fitted to collectives between hosts that ran alone.

    python3 validate/pytorch/fit_collectives.py RUNS.json --operators OPERATORS.json [--foretrain build/foretrain]

RUNS.json and OPERATORS.json are what host_steps.py --parallel and host_operators.py left. Prints the figures
(FIGURES, of `processor:` in a device file) that make the mean of |ln(predicted / measured)| least, by Nelder and Mead's
method from --start and from half and twice that, and that mean with the figures of --gpu and with these. No step of
training has a part in it. Needs SciPy (Debian: python3-scipy).
"""

import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from host_cases import USUAL
from host_steps import probed
from host_table import speed_of

FIGURES = {"message": "us", "wake": "us", "all_reduce": "us", "sum_rate": "GB/s"}


def collectives(runs, speed, gpu):
    """Rows of a table of cases: the scenario of each, and what it took."""
    return [{"case": run["name"], "group": "collectives", "base": "replay-hosts",
             "cluster.node": f"{{ preset: host-training, gpu: {gpu} }}", "cluster.nodes": run["workers"],
             "cluster.network.nic_bandwidth": f"{run['rate']} Mbit/s",
             "cluster.node.gpu.processor.share": round(run["share"] * speed, 4),
             "workload.collective.operation": run["operation"], "workload.collective.size": f"{run['batch']} B",
             "workload.collective.ranks": run["workers"], "workload.collective.algorithm": "auto",
             "measured.time": f"{run['median_s'] * 1e3} ms"}
            for run in (dict(USUAL, **run) for run in runs) if run["kind"] == "sum" and run["operation"] != "send"]


def misfit(rows, figures, options, folder):
    table = pathlib.Path(folder, "cases.csv")
    cells = {f"cluster.node.gpu.processor.{name}": f"{value:.4g} {FIGURES[name]}" for name, value in figures.items()}
    with open(table, "w", newline="") as out:
        cases = csv.DictWriter(out, [*rows[0], *cells])
        cases.writeheader()
        cases.writerows({**row, **cells} for row in rows)
    done = subprocess.run([options.foretrain, "validate", "--cases", table, "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return statistics.mean(abs(math.log(case["predicted"] / case["measured"]))
                           for case in json.loads(done.stdout)["cases"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--operators", type=pathlib.Path, required=True)
    parser.add_argument("--gpu", default="host-core-2.6", help="the device whose other figures hold")
    parser.add_argument("--start", nargs=4, type=float, default=(150.0, 100.0, 100.0, 1.0), metavar=tuple(FIGURES))
    parser.add_argument("--foretrain", default="build/foretrain")
    options = parser.parse_args()
    from scipy.optimize import minimize
    runs = json.loads(options.runs.read_text())["runs"]
    days = {run["date"] for run in runs if run["kind"] == "sum"}
    speed = speed_of([run for run in runs if run.get("date") in days], probed(options.operators))
    rows = collectives(runs, speed, options.gpu)
    with tempfile.TemporaryDirectory() as folder:
        def far(logarithms):
            return misfit(rows, dict(zip(FIGURES, map(math.exp, logarithms))), options, folder)

        starts = [[math.log(value * factor) for value in options.start] for factor in (1.0, 0.5, 2.0)]
        fits = [minimize(far, start, method="Nelder-Mead", options=dict(maxfev=200, xatol=0.01, fatol=1e-5))
                for start in starts]
        best = min(fits, key=lambda fit: fit.fun)
        print(f"{len(rows)} collectives, cores at {speed:.3f} of their speed: {misfit(rows, {}, options, folder):.1%} "
              f"with the device's figures, {best.fun:.1%} with")
    for (name, unit), value in zip(FIGURES.items(), map(math.exp, best.x)):
        print(f"  {name}: {value:.3g} {unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
