#!/usr/bin/env python3
"""Steps of real training, by PyTorch on processors over real TCP, timed: the ground truth for predictions on hosts.

    /usr/bin/python3 validate/pytorch/host_steps.py -o MEASUREMENTS.json --table CASES.csv [--only lenet] [--minutes 20]
        [--parallel|--vision|--lifetime]

Needs root, iproute2 and PyTorch with Gloo (Debian: python3-torch). Every host is a network namespace with a card of a
stated rate and one process that trains with one thread (host_lab.py). The last host is the server where there is one.

Two kinds of share are measured. With a whole core each, hosts are as many as cores, each pinned to its own: nothing is
shared but the last cache and memory. With half a core each, four hosts share two cores, and the scheduler's quota, in
periods of 10 ms, holds each to its half whether others compute or not; so what one takes is never another's, and the
step is that of separate machines with cores half as fast. Both hold as far as the machine is quiet: what other programs
took is measured beside every run, and a run beside which they took more than 3 % is said and measured again next time.

Values are those of rank 0, step by step, after warm-up, or of an asynchronous server, round by round; MEASUREMENTS.json
keeps them all, and what it holds already is not measured again. Exit status: 0 all cases measured, 1 some failed
(listed) or were disturbed, 2 bad usage or cannot be done here (said why), 130 interrupted.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import threading
import time

import host_lab
from host_cases import USUAL, parallel_cases, training_cases, vision_cases
from host_lifetime import Lifetimes
from host_table import write_table

TIMEOUT_S = 150
DISTURBED = 0.03  # share of the cores that others may take
PROCESS = pathlib.Path(__file__).with_name("host_process.py")
TRAFFIC = """import socket, sys
if sys.argv[1] == "take":
    taken = socket.create_server(("", 29600)).accept()[0]
    try:
        while taken.recv(1 << 18): pass
    except OSError: pass
else:
    sent = socket.create_connection((sys.argv[2], 29600))
    try:
        while True: sent.sendall(bytes(1 << 18))
    except OSError: pass
"""


class Hosts:
    """A lab with a waiting process on each host; with `beside`, as many servers on the hosts of workers as well."""

    def __init__(self, count, share, beside=0):
        self.lab = host_lab.Lab(count)
        self.kind, self.count, self.share = (count, share, beside), count, share
        self.processes, self.traffic, self.port = [], [], 30000
        self.lab.shape([(1000, 1000)] * count)
        for rank in range(count + beside):
            self.processes.append(
                self.lab.start(rank % count, [sys.executable, str(PROCESS)], env=host_lab.of_training(RANK=str(rank)),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True))
        self.versions = self.answers()

    def answers(self):
        """A line of each process; those that take too long are ended."""
        late = threading.Timer(TIMEOUT_S, self.kill)
        late.start()
        try:
            lines = [process.stdout.readline() for process in self.processes]
        finally:
            late.cancel()
        if all(lines):
            return [json.loads(line) for line in lines]
        self.kill()
        texts = [process.stderr.read().strip().splitlines() for process in self.processes]
        raise RuntimeError(next((text[-1] for text in texts if text), f"no answer within {TIMEOUT_S} s"))

    def set_up(self, case):
        """Rates of the cards, shares of the cores, and others' traffic."""
        rates = [case["slow"] if host == 0 and case["slow"] else case["rate"] for host in range(self.count)]
        self.lab.shape([(rate, rate) for rate in rates], case["uplink"])
        slow = case["workers"] - 1 if case["slow_core"] else None
        self.lab.hold([self.share / case["slow_core"] if host == slow else self.share for host in range(self.count)])
        if case["background"]:
            source, target = case["background"]
            for host, words in ((target, ["take"]), (source, ["send", host_lab.address(target)])):
                self.traffic.append(self.lab.start(host, [sys.executable, "-c", TRAFFIC] + words, held=False))
                time.sleep(0.5)

    def run(self, case):
        self.set_up(case)
        before = host_lab.busy_seconds(self.processes + self.traffic), time.monotonic()
        self.port += 1
        for process in self.processes:
            process.stdin.write(json.dumps(dict(case, port=self.port)) + "\n")
            process.stdin.flush()
        answers = self.answers()
        seconds = (time.monotonic() - before[1]) * os.cpu_count()
        after = host_lab.busy_seconds(self.processes + self.traffic)
        busy, own, interrupts = (a - b for a, b in zip(after, before[0]))
        self.end_traffic()
        first = answers[0]
        # Workers of an asynchronous server are not equally fast: the server counts.
        values = answers[case["workers"] if case["kind"] in ("async", "bounded") else 0]["values"]
        result = {key: value for key, value in case.items() if value != USUAL.get(key, "none")}
        result.update(values=values, median_s=statistics.median(values), spread=spread(values),
                      cores_busy=round((busy + interrupts) / seconds, 3), interrupts=round(interrupts / seconds, 3),
                      others=round(max(0.0, busy - own) / seconds, 3))
        result.update((key, first[key]) for key in first if key != "values")
        if "exposed_s" in first:  # of the last; the others wait for it as well
            result["exposed_s"] = min(answer["exposed_s"] for answer in answers if "exposed_s" in answer)
        probes = [answer["probes"] for answer in answers if "probes" in answer]
        if probes:  # by worker
            result["probes"] = [{name: round(statistics.mean(p[name] for p in both), 4) for name in both[0]}
                                for both in probes]
        staleness = [s for answer in answers for s in answer.get("staleness", [])]
        if staleness:
            result["staleness_mean"] = statistics.mean(staleness)
        return result

    def end_traffic(self):
        for process in self.traffic:
            process.kill()
            process.wait()
        self.traffic = []

    def kill(self):
        """Each with the case that it runs, which holds its pipes."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self):
        self.end_traffic()
        self.kill()
        for process in self.processes:
            process.wait()
        self.lab.close()


def spread(values):
    """Distance of the quartiles over the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle


def machine(torch, **more):
    return dict(processor=host_lab.processor(), cores=os.cpu_count(), kernel=platform.release(), torch=torch,
                date=time.strftime("%Y-%m-%d", time.gmtime()), **more)


def save(path, measured):
    """One run a line, whole or not at all."""
    head = {key: value for key, value in measured.items() if key != "runs"}
    runs = ",\n".join("    " + json.dumps(run) for run in measured["runs"])
    text = json.dumps(head)[:-1] + ', "runs": [\n' + runs + "\n]}\n"
    partial = pathlib.Path(str(path) + ".partial")
    partial.write_text(text)
    partial.replace(path)


def write_trace(path, events):
    """The step's timeline as Chrome and Perfetto read it, and `foretrain plot timeline --beside`."""
    rows = []
    for name, thread, start, duration in events:
        if duration < 20 and not name.startswith("gloo"):
            continue
        short = name.replace("autograd::engine::evaluate_function: ", "")
        kind = "communication" if name.startswith("gloo") else "optimizer" if "Optimizer" in name else "compute"
        rows.append(json.dumps(dict(name=short, cat=kind, ph="X", ts=start, dur=duration, pid=0, tid=thread)))
    path.write_text('{"traceEvents": [\n' + ",\n".join(rows) + "\n]}\n")


class Steps:
    """Runs cases of training steps, on hosts that are kept while the next case wants such."""

    kind, write_table = "host training", staticmethod(write_table)

    def __init__(self):
        self.hosts = None

    def run(self, case):
        kind = case["hosts"], case["share"], case["servers"] if case["beside"] else 0
        if self.hosts is None or self.hosts.kind != kind:
            self.close()
            self.hosts = Hosts(*kind)
        return self.hosts.run(case)

    def versions(self):
        return self.hosts.versions[0]

    @staticmethod
    def said(run):
        return f"{run['median_s'] * 1e3:10.2f} ms  spread {run['spread']:.3f}  others {run['others']:.3f}"

    def close(self):
        if self.hosts:
            self.hosts.close()
        self.hosts = None


def measure(runner, cases, path, minutes):
    """Runs what is missing; returns the names of those that failed, were disturbed, or for which there was no time."""
    known = json.loads(path.read_text()) if path.exists() else {"kind": runner.kind, "machine": {}, "runs": []}
    measured = {run["name"]: run.get("others", 0.0) for run in known["runs"]}
    # Missing cases first, then disturbed ones.
    cases = ([case for case in cases if case["name"] not in measured] +
             [case for case in cases if measured.get(case["name"], 0.0) > DISTURBED])
    end, missing = time.monotonic() + 60 * minutes, []
    try:
        for number, case in enumerate(cases):
            if time.monotonic() > end:
                missing.append(f"{len(cases) - number} of {len(cases)} cases: no time left; start again to go on")
                break
            try:
                run = runner.run(case)
            except (RuntimeError, OSError) as error:
                missing.append(f"{case['name']}: {error}")
                runner.close()
                continue
            earlier, known["machine"] = known["machine"].get("date"), machine(**runner.versions())
            for other in known["runs"]:  # of another day than this one
                if earlier != known["machine"]["date"]:
                    other.setdefault("date", earlier)
            trace, others = run.pop("timeline", None), run.get("others", 0.0)
            if others <= measured.get(run["name"], 1.0):  # of two runs the one that was disturbed less
                if trace:
                    write_trace(path.with_name(f"{path.stem}-timeline-{case['name']}.json"), trace)
                known["runs"] = [other for other in known["runs"] if other["name"] != run["name"]] + [run]
                save(path, known)
            print(f"{number + 1:4} of {len(cases)}  {case['name']:45} {runner.said(run)}", flush=True)
            if others > DISTURBED:
                missing.append(f"{case['name']}: others took {others:.1%} of the machine")
    finally:
        runner.close()
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="where every step's time is kept, MEASUREMENTS.json")
    parser.add_argument("--operators", type=pathlib.Path, help="what host_operators.py measured before: the core that "
                        "shares of a core are of")
    parser.add_argument("--table", type=pathlib.Path, help="write them as a table of cases, too")
    others = parser.add_mutually_exclusive_group()  # by PyTorch 2.6
    others.add_argument("--parallel", dest="designed", action="store_const", const=parallel_cases, default=training_cases,
                        help="the cases that divide a model, not those of data parallel training")
    others.add_argument("--vision", dest="designed", action="store_const", const=vision_cases,
                        help="the cases of vision–language models")
    others.add_argument("--lifetime", dest="designed", action="store_const", const=Lifetimes.designed,
                        help="whole trainings that are saved and go on after workers have died")
    parser.add_argument("--only", default="", help="cases whose names contain one of these words, with commas")
    parser.add_argument("--minutes", type=float, default=45, help="no case is begun after so long (default: 45)")
    parser.add_argument("--list", action="store_true", help="print the names of all cases and end")
    parser.add_argument("--table-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    words = [word for word in options.only.split(",") if word]
    runner = Lifetimes() if options.designed is Lifetimes.designed else Steps()
    cases = [case for case in options.designed() if not words or any(word in case["name"] for word in words)]
    if not cases:
        parser.error(f"no case is called anything like {options.only}")
    if options.list:
        print("\n".join(case["name"] for case in cases))
        return 0
    if not options.output:
        parser.error("-o says where the measurements go")
    missing = []
    if not options.table_only:
        why = host_lab.why_not() or why_no_torch()
        if why:
            print(f"cannot measure here: {why}", file=sys.stderr)
            return 2
        missing = measure(runner, cases, options.output, options.minutes)
    if options.table:
        if not options.output.exists():
            print(f"{options.output} is not there: nothing was measured", file=sys.stderr)
            return 1
        measured = json.loads(options.output.read_text())
        if options.operators:
            measured["machine"]["operators_ms"] = probed(options.operators)
        runner.write_table(options.table, measured)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


def probed(operators):
    """Times of the probes, in ms, when the processor's constants were measured."""
    points = json.loads(operators.read_text())["points"]
    return {point["name"][len("probe: "):]: point["median_s"] * 1e3 for point in points if point["figure"] == "probe"}


def why_no_torch():
    code = "import torch, torch.distributed as d; assert d.is_gloo_available() if hasattr(d, 'is_gloo_available') else 1"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if child.returncode == 0:
        return ""
    return f"{sys.executable} has no PyTorch with Gloo (Debian: apt install python3-torch, and /usr/bin/python3)"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the processes on hosts first
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept", file=sys.stderr)
        sys.exit(130)
