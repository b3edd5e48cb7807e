#!/usr/bin/env python3
"""Whether answers are the same bytes: tests/cli/same_bytes.py build/foretrain [build-clang/foretrain ...]

Every run of the catalogue, a sweep as CSV and as a database's rows, a plan, a timeline, an explanation, a picture and a
report, for 1, 32 and 8 jobs, the last in a locale with a decimal comma where one is installed (German, say: package
locales), as by each other program (of another compiler, say). All are compared with the first program's by one job.
Takes minutes."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

runs = sorted(path.stem for path in pathlib.Path(__file__).parents[2].glob("scenarios/runs/*.yaml"))
size = ["--vary", "workload.collective.size=1 MB..200 MB", "--vary", "workload.collective.algorithm=ring,tree"]


def commands(jobs, folder):
    """Name, arguments and the file that is written, None where it is standard output."""
    count = ["--jobs", str(jobs)]
    yield "predictions", ["predict", *runs, "--json", *count], None
    yield "predictions as text", ["predict", *runs, "--verbose", "--fidelity", "estimate", *count], None
    yield "sweep", ["sweep", "sync-ring-4", *size, *count, "-o", "sweep.csv"], folder / "sweep.csv"
    yield "sweep of steps", ["sweep", "gpt2-xl-dgx-a100", "--vary", "plan.zero=0..3", "--vary", "cluster.nodes=1,2,4",
                             *count, "-o", "steps.jsonl"], folder / "steps.jsonl"
    yield "plan", ["plan", "gpt2-xl-dgx-a100", "--json", *count], None
    yield "explanation", ["explain", "gpt2-xl-dgx-a100", *count], None
    yield "timeline", ["timeline", "gpt2-xl-dgx-a100", "-o", "timeline.json"], folder / "timeline.json"
    yield "picture", ["plot", "breakdown", "gpt2-xl-dgx-a100", "-o", "parts.svg"], folder / "parts.svg"
    yield "report", ["report", "gpt2-xl-dgx-a100", *count, "-o", "report.html"], folder / "report.html"


def answers(program, jobs, locale):
    """Name: what was written, of every command."""
    environment = dict(os.environ, LC_ALL=locale, LANG=locale)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments, file in commands(jobs, pathlib.Path(folder)):
            done = subprocess.run([program, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            if done.returncode > 1:
                sys.exit(f"{program} {' '.join(arguments)}: {done.stderr.decode()}")
            found[name] = file.read_bytes() if file else done.stdout
    return found


def locale_with_comma():
    for name in subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split():
        if name.lower().endswith(("utf8", "utf-8")):
            point = subprocess.run(["locale", "decimal_point"], env=dict(os.environ, LC_ALL=name), capture_output=True,
                                   text=True, check=True).stdout.strip()
            if point == ",":
                return name
    return None


def difference(expected, actual):
    """The first line that differs, of both."""
    for number, (one, other) in enumerate(zip(expected.splitlines(), actual.splitlines()), 1):
        if one != other:
            at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
            begin = max(0, at - 60)
            return f"line {number}: {one[begin:at + 40]} / {other[begin:at + 40]}"
    return f"{len(expected)} bytes / {len(actual)} bytes"


def main():
    programs = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
    comma = locale_with_comma()
    other = comma or "C.UTF-8"
    variants = [(programs[0], 1, "C.UTF-8"), (programs[0], 32, "C.UTF-8"), (programs[0], 8, other)]
    variants += [(program, 2, other) for program in programs[1:]]
    if not comma:
        print("no locale with a decimal comma is installed: that is left out")
    first, differ = None, 0
    for program, jobs, locale in variants:
        found = answers(program, jobs, locale)
        first = first or found
        for name, text in found.items():
            if text != first[name]:
                differ += 1
                print(f"{program}, {jobs} jobs, {locale}: {name} differs: {difference(first[name], text)}")
        print(f"{program}, {jobs} jobs, {locale}: {len(found)} answers, {sum(map(len, found.values()))} bytes, "
              f"{hashlib.sha256(b''.join(found.values())).hexdigest()[:16]}", flush=True)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
