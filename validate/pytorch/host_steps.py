#!/usr/bin/env python3
"""Steps of real training, by PyTorch on processors over real TCP, timed: the ground truth for predictions on hosts.

    /usr/bin/python3 validate/pytorch/host_steps.py -o MEASUREMENTS.json --table CASES.csv [--only lenet] [--minutes 20]

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
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading
import time

import host_lab
from host_cases import CLASSES, MODELS, NETWORKS, SHAPES, designed_cases, write_table

LEAST, MOST, BUDGET_S, TIMEOUT_S = 4, 60, 1.5, 150
SHORTEST_S = 0.05  # of a value: several of the scheduler's periods
DISTURBED = 0.03  # share of the cores that others may take
# --- A host's process ----------------------------------------------------------------------------------------------


def prepare(case):
    """The model, and a function from what is called (the model, or what wraps it) to the loss."""
    import models
    import torch
    torch.manual_seed(1)
    shape = MODELS[case["model"]][2]
    if shape:
        model = models.build_transformer(shape, bert=case["model"].startswith("bert"))
        tokens, targets = (torch.randint(0, shape[3], (case["batch"], shape[4])) for _ in range(2))
        return model, lambda call: call(tokens, targets)
    model = models.build_network(NETWORKS.get(case["model"], case["model"]))
    images = torch.randn(case["batch"], *SHAPES[case["model"]])
    labels = torch.randint(0, CLASSES.get(case["model"], 10), (case["batch"],))
    return model, lambda call: torch.nn.functional.cross_entropy(call(images), labels)


def local_step(model, loss_of, call, optimizer):
    optimizer.zero_grad(set_to_none=True)
    loss_of(call).backward()
    optimizer.step()


def ring_step(model, loss_of, group):
    import torch
    call = torch.nn.parallel.DistributedDataParallel(model, process_group=group) if group else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=False)
    return lambda: local_step(model, loss_of, call, optimizer)


def worker_step(model, loss_of, server):
    """Push all gradients, pull all weights: one message each."""
    import torch
    import torch.distributed as dist
    parameters = list(model.parameters())
    weights = torch.empty(sum(p.numel() for p in parameters))

    def step():
        for p in parameters:
            p.grad = None
        loss_of(model).backward()
        dist.send(torch.cat([p.grad.view(-1) for p in parameters]), server)
        dist.recv(weights, server)
        with torch.no_grad():
            for p, new in zip(parameters, weights.split([p.numel() for p in parameters])):
                p.copy_(new.view_as(p))

    return step


def serve(case, model, steps):
    """A server of all weights. Of asynchronous ones returns how many updates of others lay between each pull and its
    push, and the time in which as many updates came as there are workers, until the first of them is done."""
    import torch
    import torch.distributed as dist
    workers = case["workers"]
    weights = torch.cat([p.detach().view(-1) for p in model.parameters()])
    pushed = [torch.empty_like(weights) for _ in range(workers)]
    if case["kind"] == "server":
        for _ in range(steps):
            for waiting in [dist.irecv(pushed[w], w) for w in range(workers)]:
                waiting.wait()
            for w in range(1, workers):
                pushed[0].add_(pushed[w])
            weights.add_(pushed[0], alpha=-1e-4 / workers)
            for waiting in [dist.isend(weights, w) for w in range(workers)]:
                waiting.wait()
        return {}
    version, pulled, staleness, sending, times, left = 0, [0] * workers, [], {}, [], [steps] * workers
    for _ in range(steps * workers):
        worker = dist.recv(pushed[0])
        weights.add_(pushed[0], alpha=-1e-4)
        staleness.append(version - pulled[worker])
        version += 1
        pulled[worker] = version
        if min(left) > 0:
            times.append(time.perf_counter())
        left[worker] -= 1
        if worker in sending:
            sending[worker].wait()
        sending[worker] = dist.isend(weights.clone(), worker)
    for waiting in sending.values():
        waiting.wait()
    rounds = times[::workers]
    return {"staleness": staleness, "values": [b - a for a, b in zip(rounds, rounds[1:])]}


def peak_memory():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def timed(step, count, together=1):
    """Seconds of a step, each value over some steps together."""
    values, last = [], time.perf_counter()
    for _ in range(count):
        for _ in range(together):
            step()
        now = time.perf_counter()
        values.append((now - last) / together)
        last = now
    return values


def run_case(case, rank, groups):
    import torch
    import torch.distributed as dist
    with_server = case["kind"] in ("server", "async")
    members = case["workers"] + with_server
    if rank >= members:
        return {}
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak of memory starts anew
    model, loss_of = prepare(case)
    serves = with_server and rank == case["workers"]
    if with_server and not serves:
        step = worker_step(model, loss_of, case["workers"])
    elif not serves:
        step = ring_step(model, loss_of, groups[case["workers"]] if case["workers"] > 1 else None)
    result, warm_up = {}, 3
    if serves:
        serve(case, model, warm_up)
    else:
        once = timed(step, warm_up)[-1]
    together = 1 if serves else math.ceil(SHORTEST_S / once)
    plan = torch.tensor([0 if serves else max(LEAST, min(MOST, int(BUDGET_S / once / together))), together])
    if members > 1:
        dist.broadcast(plan, 0, group=groups[members])
    count, together = plan.tolist()
    if serves:
        result.update(serve(case, model, count * together))
    else:
        result["values"] = timed(step, count, together)
    result["peak_bytes"] = peak_memory()
    return result


def worker_main():
    """Cases come as lines of standard input, results go as lines to standard output."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    rank, hosts = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    groups = {n: dist.new_group(list(range(n))) for n in range(2, hosts + 1)}
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_case(json.loads(line), rank, groups)), flush=True)


# --- All cases -----------------------------------------------------------------------------------------------------


class Hosts:
    """A lab with a waiting process on each host."""

    def __init__(self, count, share):
        self.lab = host_lab.Lab(count)
        self.count, self.share, self.processes = count, share, []
        self.lab.shape([(1000, 1000)] * count)
        for host in range(count):
            environment = dict(os.environ, RANK=str(host), WORLD_SIZE=str(count), MASTER_ADDR=host_lab.address(0),
                               MASTER_PORT="29500", GLOO_SOCKET_IFNAME="eth0", OMP_NUM_THREADS="1",
                               OPENBLAS_NUM_THREADS="1")
            self.processes.append(
                self.lab.start(host, [sys.executable, os.path.abspath(__file__), "--worker"], env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.versions = self.answers()
        self.lab.hold(share)

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

    def run(self, case):
        self.lab.shape([(case["slow"] if host == 0 and case["slow"] else case["rate"],
                         case["slow"] if host == 0 and case["slow"] else case["rate"]) for host in range(self.count)])
        before = busy_seconds(self.processes), time.monotonic()
        for process in self.processes:
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
        answers = self.answers()
        seconds = (time.monotonic() - before[1]) * os.cpu_count()
        busy, own, interrupts = (a - b for a, b in zip(busy_seconds(self.processes), before[0]))
        # Workers of an asynchronous server are not equally fast: the server counts.
        values = answers[case["workers"] if case["kind"] == "async" else 0]["values"]
        result = dict(case, values=values, median_s=statistics.median(values), spread=spread(values),
                      peak_bytes=answers[0]["peak_bytes"],
                      cores_busy=round((busy + interrupts) / seconds, 3),
                      interrupts=round(interrupts / seconds, 3), others=round(max(0.0, busy - own) / seconds, 3))
        staleness = [s for answer in answers for s in answer.get("staleness", [])]
        if staleness:
            result["staleness_mean"] = statistics.mean(staleness)
        return result

    def kill(self):
        for process in self.processes:
            process.kill()

    def close(self):
        self.kill()
        for process in self.processes:
            process.wait()
        self.lab.close()


def busy_seconds(processes):
    """Processor time of all programs of the machine, of these processes (system calls included), and of interrupts."""
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, hard, soft = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:8])
    own = 0
    for process in processes:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        own += int(fields[11]) + int(fields[12])
    return (user + nice + system) / tick, own / tick, (hard + soft) / tick


def spread(values):
    """Distance of the quartiles over the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle


def machine(versions):
    return dict(processor=host_lab.processor(), cores=os.cpu_count(), kernel=platform.release(),
                torch=versions, date=time.strftime("%Y-%m-%d", time.gmtime()))


def save(path, measured):
    """One run a line, whole or not at all."""
    head = {key: value for key, value in measured.items() if key != "runs"}
    runs = ",\n".join("    " + json.dumps(run) for run in measured["runs"])
    text = json.dumps(head)[:-1] + ', "runs": [\n' + runs + "\n]}\n"
    partial = pathlib.Path(str(path) + ".partial")
    partial.write_text(text)
    partial.replace(path)


def measure(cases, path, minutes):
    """Runs what is missing; returns the names of those that failed, were disturbed, or for which there was no time."""
    known = json.loads(path.read_text()) if path.exists() else {"kind": "host training", "machine": {}, "runs": []}
    asked = {case["name"] for case in cases}
    known["runs"] = [run for run in known["runs"] if run["others"] <= DISTURBED or run["name"] not in asked]
    done = {run["name"] for run in known["runs"]}
    end, missing, hosts = time.monotonic() + 60 * minutes, [], None
    try:
        for number, case in enumerate(cases):
            if case["name"] in done:
                continue
            if time.monotonic() > end:
                missing.append(case["name"] + ": no time left")
                continue
            try:
                if hosts is None or (hosts.count, hosts.share) != (case["hosts"], case["share"]):
                    if hosts:
                        hosts.close()
                    hosts = None
                    hosts = Hosts(case["hosts"], case["share"])
                run = hosts.run(case)
            except (RuntimeError, OSError) as error:
                missing.append(f"{case['name']}: {error}")
                if hosts:
                    hosts.close()
                hosts = None
                continue
            known["machine"] = machine(hosts.versions[0]["torch"])
            known["runs"].append(run)
            save(path, known)
            print(f"{number + 1:4} of {len(cases)}  {case['name']:40} {run['median_s'] * 1e3:10.2f} ms  spread "
                  f"{run['spread']:.3f}  others {run['others']:.3f}", flush=True)
            if run["others"] > DISTURBED:
                missing.append(f"{case['name']}: others took {run['others']:.1%} of the machine")
    finally:
        if hosts:
            hosts.close()
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="where every step's time is kept, MEASUREMENTS.json")
    parser.add_argument("--table", type=pathlib.Path, help="write them as a table of cases, too")
    parser.add_argument("--only", default="", help="cases whose names contain one of these words, with commas")
    parser.add_argument("--minutes", type=float, default=45, help="no case is begun after so long (default: 45)")
    parser.add_argument("--list", action="store_true", help="print the names of all cases and end")
    parser.add_argument("--table-only", action="store_true", help="measure nothing")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker_main()
        return 0
    words = [word for word in options.only.split(",") if word]
    cases = [case for case in designed_cases() if not words or any(word in case["name"] for word in words)]
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
        missing = measure(cases, options.output, options.minutes)
    if options.table:
        if not options.output.exists():
            print(f"{options.output} is not there: nothing was measured", file=sys.stderr)
            return 1
        write_table(options.table, json.loads(options.output.read_text()))
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


def why_no_torch():
    code = "import torch, torch.distributed as d; assert d.is_gloo_available() if hasattr(d, 'is_gloo_available') else 1"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if child.returncode == 0:
        return ""
    return f"{sys.executable} has no PyTorch with Gloo (Debian: apt install python3-torch, and /usr/bin/python3)"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept", file=sys.stderr)
        sys.exit(130)
