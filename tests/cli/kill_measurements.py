#!/usr/bin/env python3
"""Kills replays and calibrations, again and again: tests/cli/kill_measurements.py build/foretrain [KILLS]

As root, by signal 9 and at random moments, KILLS of each (20 where nothing is said). After each, no process may be left;
what was measured before is still there, whole and once; and the next run removes what a dead one left: network
namespaces, the mount of their folder, folders among the temporary files. Takes a few minutes."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

namespaces = pathlib.Path("/run/netns")
cases = """case,base,cluster.nodes,workload.collective.size,workload.collective.algorithm,workload.collective.servers,replay.executor
ring,replay-hosts,4,200 KB,ring,,own
tree,replay-hosts,3,200 KB,tree,,own
halving,replay-hosts,4,200 KB,halving_doubling,,own
servers,replay-hosts,3,200 KB,parameter_server,2,server
naive,replay-hosts,2,200 KB,naive,,own
"""


def processes_with(*words):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if any(word in command for word in words):
            found.append(command)
    return found


def is_mounted():
    return any(line.split()[1] == str(namespaces) for line in pathlib.Path("/proc/self/mounts").read_text().splitlines())


def require(holds, what):
    if not holds:
        sys.exit(what)


class Victim:
    """A command that is killed at random moments, in a folder of its own."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.environment = dict(os.environ, TMPDIR=str(folder))
        self.processes = []

    def start(self):
        process = subprocess.Popen(self.command, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.processes.append(process.pid)
        return process

    def kill(self, longest_s):
        """Returns whether it was killed before its end."""
        process = self.start()
        time.sleep(random.uniform(0.0, longest_s))
        process.send_signal(signal.SIGKILL)
        killed = process.wait() < 0
        for _ in range(300):
            if not processes_with(str(self.folder)):
                return killed
            time.sleep(0.01)
        sys.exit(f"left running: {processes_with(str(self.folder))}")

    def finish(self):
        """Returns how long it takes, undisturbed."""
        begin = time.monotonic()
        process = self.start()
        require(process.wait() == 0, f"exit status {process.returncode}: {self.command}")
        return time.monotonic() - begin

    def require_nothing_left(self, expected):
        prefixes = tuple(f"foretrain-{process}-" for process in self.processes)
        left = [path.name for path in namespaces.glob("*") if path.name.startswith(prefixes)]
        require(not left, f"namespaces are left: {left}")
        names = {path.name for path in self.folder.iterdir()}
        require(names <= expected, f"left behind: {names - expected}")


def kill_replays(program, kills, folder):
    (folder / "cases.csv").write_text(cases)
    output = folder / "runs.json"
    victim = Victim([program, "replay", "--cases", folder / "cases.csv", "--repetitions", "3", "-o", output], folder)
    victim.finish()  # also removes what others' dead runs left
    mounted = is_mounted()
    output.unlink()
    longest_s = victim.finish()
    before, resumed, killed, finished = [], 0, 0, 0
    while killed < kills:
        resumed += bool(before)
        killed += victim.kill(1.2 * longest_s)
        runs = json.loads(output.read_text())["runs"] if output.exists() else []
        require(runs[:len(before)] == before, "what was measured has changed")
        require(len({run["case"] for run in runs}) == len(runs), "a run is there twice")
        before = runs
        if len(runs) == 5:
            output.unlink()
            finished, before = finished + 1, []
    victim.finish()
    require(len(json.loads(output.read_text())["runs"]) == 5, "runs are missing")
    victim.require_nothing_left({"cases.csv", "runs.json"})
    require(mounted or not is_mounted() or any(namespaces.iterdir()), f"{namespaces} is left mounted")
    print(f"replays: {killed} kills, {resumed} while resuming, finished {finished + 1} times, nothing lost or left")


def kill_calibrations(program, kills, folder):
    output = folder / "calibration.json"
    command = [program, "calibrate", "--quick", "--only", "memory,disk,loader", "--directory", folder, "-o", output]
    victim = Victim(command, folder)
    killed, kept = 0, 0
    longest_s = victim.finish()
    while killed < kills:
        whole = output.read_text() if output.exists() else ""
        if killed % 2 == 1:
            output.unlink(missing_ok=True)
            whole = ""
        killed += victim.kill(1.1 * longest_s)
        if output.exists():
            report = json.loads(output.read_text())
            require(report["kind"] == "calibration of a machine", "no calibration")
            # One that is complete gives way to another complete one alone.
            require(report["complete"] or not whole or not json.loads(whole)["complete"], "a calibration was lost")
            kept += 1
    victim.finish()
    require(json.loads(output.read_text())["complete"], "not complete")
    victim.require_nothing_left({"calibration.json"})
    print(f"calibrations: {killed} kills, {kept} with what was measured before, nothing lost or left")


def main():
    program, kills = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    random.seed(1)
    for kill in (kill_replays, kill_calibrations):
        with tempfile.TemporaryDirectory() as folder:
            kill(program, kills, pathlib.Path(folder))


if __name__ == "__main__":
    main()
