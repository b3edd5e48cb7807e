#!/usr/bin/env python3
"""What each kernel of a training step reads from and writes to memory, counted by the GPU (Nsight Compute).

    python3 validate/pytorch/counters.py -o DIR [CASE...]

CASE is a name that `train_steps.py` has; without one, those of two layers of Llama 3 70B and of Mixtral. Writes DIR/counters-CASE.json: "kernels", each launch in its order as
[name, grid, seconds, bytes read, bytes written]: counters that one pass reads, since a second pass would first put back
all that the kernel wrote. Caches and clocks are left as the program has them; kernels run one by one, so that seconds are
no step's. Needs ncu, and the right to read counters.

Exit status: 0 all counted, 1 some were not (said), 2 bad usage or no ncu.
"""

import argparse
import csv
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from train_steps import designed_cases, environment_in_child, name_of

METRICS = ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")
MOST_S = 240


def profiler():
    """ncu, on the path or where NVIDIA's packages put it; None where there is none."""
    found = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu") + glob.glob("/usr/local/cuda*/bin/ncu"))
    return shutil.which("ncu") or (found[-1] if found else None)


def few_kernels(case):
    """Whether a step has some hundred of them: each takes the profiler tens of milliseconds."""
    return case["model"] in ("llama3-70b", "mixtral-8x7b") and case["execution"] == "eager" and "recompute" not in case


def launches_of(report):
    """The rows of what `ncu --page raw --csv` wrote; the first of them is of units."""
    lines = [line for line in report.splitlines() if not line.startswith("==")]
    rows = []
    for row in list(csv.DictReader(lines))[1:]:
        nanoseconds, read, written = (float(row[metric].replace(",", "")) for metric in METRICS)
        rows.append([row["Kernel Name"], row["Grid Size"], nanoseconds * 1e-9, read, written])
    return rows


def count(case, ncu):
    """The launches of a step of the case."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "one_step.py")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "ncu.csv"
        command = [ncu, "--profile-from-start", "off", "--metrics", ",".join(METRICS), "--cache-control", "none",
                   "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log),
                   sys.executable, program, json.dumps(case), "--for-profiler"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S)
        report = log.read_text() if log.exists() else ""
    if run.returncode != 0 or "Kernel Name" not in report:
        said = [line for line in (report + run.stdout + run.stderr).splitlines() if "rror" in line] or ["no kernel was seen"]
        raise RuntimeError(said[-1][:300])
    return launches_of(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="name of a case (one of each kind of model)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder for the results")
    options = parser.parse_args()
    ncu = profiler()
    if ncu is None:
        parser.error("no ncu: install Nsight Compute, which the CUDA toolkit has")
    about = environment_in_child()
    designed = {name_of(case): case for case in designed_cases(False, **about.pop("gpu_can"))}
    names = options.case or [name for name, case in designed.items() if few_kernels(case)]
    unknown = [name for name in names if name not in designed]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; train_steps.py --list prints them")
    options.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        try:
            kernels = count(designed[name], ncu)
        except (RuntimeError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
            failed = 1
            print(f"{name}: {error}", file=sys.stderr)
            continue
        path = options.output / f"counters-{name}.json"
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(dict(kind="memory traffic of a step's kernels", **about, kernels=kernels), indent=0))
        os.replace(partial, path)
        print(f"{name}: {len(kernels)} kernels", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
