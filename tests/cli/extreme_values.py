#!/usr/bin/env python3
"""Gives keys of scenarios the values that nobody means, and looks that each is refused or predicted as finite times.

Usage: tests/cli/extreme_values.py [--every N] [--first K] [--fidelity estimate|flows] PROGRAM [SCENARIO...]

Every scenario (default: all of scenarios/runs) is predicted once for each value of each N-th key (default 1), from the
K-th on, by `sweep --cases`. What is wrong is printed: a row that ends by a signal or for lack of memory, a number that is
not finite or negative, parts of a step that are longer than the step, and keys whose values take longer than 20 s."""

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


def rows_of(keys, base):
    cells = [(key["key"], value) for key in keys for value in values_of(key["value"])]
    names = list(dict.fromkeys(name for name, _ in cells))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "base", *names])
    for i, (name, value) in enumerate(cells):
        writer.writerow([f"{i}: {name}={value}", base, *(value if other == name else "" for other in names)])
    return len(cells), text.getvalue()


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


def check(program, base, keys, fidelity):
    """How many rows there were, and what was wrong with them; a slow sweep is halved until its key is known."""
    with tempfile.TemporaryDirectory() as folder:
        cases, out = pathlib.Path(folder, "cases.csv"), pathlib.Path(folder, "out.csv")
        count, text = rows_of(keys, base)
        cases.write_text(text)
        try:
            run = subprocess.run([program, "sweep", "--cases", cases, "--fidelity", fidelity, "-o", out], timeout=20,
                                 capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            if len(keys) == 1:
                return count, [f"{base}: {keys[0]['key']}: its {count} values take longer than 20 s"]
            half = len(keys) // 2
            first, second = (check(program, base, part, fidelity) for part in (keys[:half], keys[half:]))
            return count, first[1] + second[1]
        if not out.exists():
            return count, [f"{base}: exit status {run.returncode}: {run.stderr.strip()[:1000]}"]
        found = [f"{row['case']} of {base}: {fault}" for row in csv.DictReader(out.open()) for fault in faults(row)]
    if run.returncode not in (0, 1):
        found.append(f"{base}: exit status {run.returncode}: {run.stderr.strip()[:1000]}")
    return count, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fidelity", default="estimate")
    parser.add_argument("program")
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    every_key = json.loads(subprocess.run([options.program, "keys", "--json"], capture_output=True, check=True).stdout)
    keys = [key for key in every_key if key["file"] == "scenario" and re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", key["key"])]
    scenarios = options.scenario or sorted(path.stem for path in (root / "scenarios/runs").glob("*.yaml"))
    rows, found = 0, []
    for i, scenario in enumerate(scenarios):
        count, faults_here = check(options.program, scenario, keys[(options.first + i) % options.every::options.every],
                                   options.fidelity)
        rows += count
        found += faults_here
        print(f"{scenario}: {count} rows, {len(faults_here)} faults", flush=True)
        for fault in faults_here[:20]:
            print(f"  {fault}", flush=True)
    print(f"{rows} rows of {len(scenarios)} scenarios, {len(found)} faults")
    sys.exit(1 if found else 0)


main()
