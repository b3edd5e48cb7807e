#!/usr/bin/env python3
"""Follows the walk of model/walk.md: each file that it names exists, and the command that it explains runs through it.

    tests/cli/follow_walk.py PROGRAM [LLVM_VERSION]

PROGRAM was compiled by clang with -fprofile-instr-generate -fcoverage-mapping; llvm-profdata and llvm-cov of the same
version tell which functions of which files ran.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

MOST_FILES = 9

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
program = os.path.abspath(sys.argv[1])
suffix = f"-{sys.argv[2]}" if len(sys.argv) > 2 else ""

with open(os.path.join(root, "model", "walk.md"), encoding="utf-8") as page:
    walk = page.read()
command = re.search(r"`foretrain ([^`]+)`", walk).group(1).split()
files = re.findall(r"^\d+\. `([^`]+)`", walk, re.MULTILINE)

with tempfile.TemporaryDirectory() as folder:
    raw, profile = os.path.join(folder, "%p.profraw"), os.path.join(folder, "walk.profdata")
    subprocess.run([program, *command], check=True, cwd=root, stdout=subprocess.DEVNULL,
                   env={**os.environ, "LLVM_PROFILE_FILE": raw})
    # Simulations run in children, each with counters of its own.
    counted = [os.path.join(folder, name) for name in os.listdir(folder)]
    subprocess.run([f"llvm-profdata{suffix}", "merge", "-o", profile, *counted], check=True)
    summary = json.loads(subprocess.run(
        [f"llvm-cov{suffix}", "export", "-summary-only", "-instr-profile", profile, program],
        check=True, stdout=subprocess.PIPE).stdout)

ran = {os.path.relpath(entry["filename"], root): entry["summary"]["functions"]["covered"]
       for entry in summary["data"][0]["files"]}
wrong = [f"{file}: no such file" for file in files if not os.path.exists(os.path.join(root, file))]
wrong += [f"{file}: `{' '.join(command)}` runs none of its functions" for file in files if not ran.get(file)]
if not 0 < len(files) <= MOST_FILES:
    wrong.append(f"{len(files)} files, where at most {MOST_FILES} are to tell it")
print("\n".join(wrong) or f"{len(files)} files, each of which `foretrain {' '.join(command)}` runs through")
if os.environ.get("FORETRAIN_WALK") == "all":  # what could be named
    print("\n".join(f"{count:5} {file}" for file, count in sorted(ran.items()) if count and file.endswith(".cpp")))
sys.exit(1 if wrong else 0)
