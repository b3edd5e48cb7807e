"""A process on a host that trains, or that serves parameters: started by host_steps.py, one case after the other.

Cases come as lines of standard input, results go as lines to standard output. Every case is a process of its own.
PyTorch 1.13 or newer, one thread.
"""

import contextlib
import functools
import json
import math
import os
import pathlib
import resource
import sys
import time

import models
import torch
import torch.distributed as dist
from host_cases import CLASSES, MODELS, NETWORKS, PARALLEL, RATE, SHAPES

LEAST, MOST, BUDGET_S = 4, 60, 1.2
SHORTEST_S = 0.05  # of a value: several of the scheduler's periods


def prepare(case):
    """The model, and a function from what is called (the model, or what wraps it) to the loss."""
    torch.manual_seed(1)
    if case["kind"] == "vision":
        import host_vision
        return host_vision.prepare(case)
    shape = MODELS[case["model"]][2]
    if shape:
        model = models.build_transformer(shape, bert=case["model"].startswith("bert"))
        if case["checkpoint"]:
            from torch.utils.checkpoint import checkpoint
            for block in model.blocks:
                block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        tokens, targets = (torch.randint(0, shape[3], (case["batch"], shape[4])) for _ in range(2))
        return model, lambda call: call(tokens, targets)
    model = models.build_network(NETWORKS.get(case["model"], case["model"]))
    images = torch.randn(case["batch"], *SHAPES[case["model"]])
    labels = torch.randint(0, CLASSES.get(case["model"], 10), (case["batch"],))
    return model, lambda call: torch.nn.functional.cross_entropy(call(images), labels)


class Exposed:
    """Time in which a step waits for the network: from the last gradient to the end of the exchange."""

    def __init__(self, model):
        self.last, self.total, self.steps = 0.0, 0.0, 0
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        for parameter in trained[:2]:  # whose gradients come last
            parameter.register_hook(self.computed)

    def computed(self, gradient):
        self.last = time.perf_counter()

    def ended(self):
        self.total += time.perf_counter() - self.last
        self.steps += 1


def backward(case, loss_of, call):
    """All micro-batches; gradients are exchanged after the last of them."""
    silent = getattr(call, "no_sync", contextlib.nullcontext)
    for _ in range(case["accumulate"] - 1):
        with silent():
            loss_of(call).backward()
    loss_of(call).backward()


def ring_step(case, model, loss_of, exposed):
    call = model
    if case["workers"] > 1:
        # The only buffers of vision–language models are rotary angles, which are constant.
        call = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=case["kind"] != "vision")
        if case["hook"] == "fp16":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
            call.register_comm_hook(None, fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, foreach=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        backward(case, loss_of, call)
        exposed.ended()
        optimizer.step()

    return step


def server_ranks(case):
    return range(case["workers"], case["workers"] + case["servers"])


def shares(case, elements):
    """Number of parameters of each server."""
    return [elements * (s + 1) // case["servers"] - elements * s // case["servers"] for s in range(case["servers"])]


def worker_step(case, model, loss_of, exposed):
    """Push all gradients, pull all weights: one message to and from each server."""
    parameters = list(model.parameters())
    sizes = [p.numel() for p in parameters]
    weights = torch.empty(sum(sizes))
    pieces = shares(case, weights.numel())

    def step():
        for p in parameters:
            p.grad = None
        backward(case, loss_of, model)
        pushed = torch.cat([p.grad.view(-1) for p in parameters]).split(pieces)
        under_way = [dist.isend(piece, server) for server, piece in zip(server_ranks(case), pushed)]
        under_way += [dist.irecv(piece, server) for server, piece in zip(server_ranks(case), weights.split(pieces))]
        for message in under_way:
            message.wait()
        exposed.ended()
        with torch.no_grad():
            for p, new in zip(parameters, weights.split(sizes)):
                p.copy_(new.view_as(p))

    return step


def serve_together(case, weights, steps):
    """Synchronous: all push, all are added up, all pull."""
    workers = case["workers"]
    pushed = [torch.empty_like(weights) for _ in range(workers)]
    for _ in range(steps):
        for waiting in [dist.irecv(pushed[w], w) for w in range(workers)]:
            waiting.wait()
        for w in range(1, workers):
            pushed[0].add_(pushed[w])
        weights.add_(pushed[0], alpha=-RATE / workers)
        for waiting in [dist.isend(weights, w) for w in range(workers)]:
            waiting.wait()


def serve_each(case, weights, steps):
    """Asynchronous: a push is an update and its worker pulls after it; with `bound` k, for iteration i, when all
    updates of iteration i-k-1 are in.

    Returns, until the first worker is done, how many updates of others lay between each pull and its push, and the time
    in which as many updates came as there are workers.
    """
    workers, bound = case["workers"], case["bound"]
    pushed, sending, waiting = torch.empty_like(weights), {}, set()
    done, pulled, staleness, times = [0] * workers, [0] * workers, [], []
    for version in range(steps * workers):
        worker = dist.recv(pushed)
        weights.add_(pushed, alpha=-RATE)
        if max(done) < steps:
            staleness.append(version - pulled[worker])
            times.append(time.perf_counter())
        done[worker] += 1
        waiting.add(worker)
        for other in [w for w in waiting if bound is None or done[w] - bound <= min(done)]:
            waiting.remove(other)
            pulled[other] = version + 1
            if other in sending:
                sending[other].wait()
            sending[other] = dist.isend(weights.clone(), other)
    for message in sending.values():
        message.wait()
    half = len(times) // 2  # until then the fast ones run ahead as far as they may
    rounds = times[half::workers]
    return {"staleness": staleness[half:], "values": [b - a for a, b in zip(rounds, rounds[1:])]}


def probe_calls():
    """Single operators, whose operands stay in the caches."""
    x, weight = torch.randn(512, 256), torch.randn(1024, 256)
    image, filters = torch.randn(8, 64, 28, 28), torch.randn(64, 64, 3, 3)
    large = torch.randn(32, 64, 28, 28)
    return {"product": lambda: x @ weight.t(),
            "convolution": lambda: torch.nn.functional.conv2d(image, filters, padding=1),
            "relu": lambda: torch.nn.functional.relu(large)}


def probe(seconds=0.06):
    """Milliseconds of the processor's time that they take: how fast the core is here and now, while the other hosts'
    cores compute as well."""
    result, calls = {}, probe_calls()
    for name, call in calls.items():
        call()
        begun, times = time.process_time(), 0
        while time.process_time() - begun < seconds / len(calls):
            call()
            times += 1
        result[name] = (time.process_time() - begun) / times * 1e3
    return result


def status_bytes(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
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


def used():
    """Processor time of this process, and its page faults."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime, usage.ru_minflt


def train(case, step, exposed, count, together):
    before, thread = used(), time.thread_time()
    if exposed:
        exposed.total, exposed.steps = 0.0, 0
    values = timed(step, count, together)
    user, system, faults = ((b - a) / (count * together) for a, b in zip(before, used()))
    thread = (time.thread_time() - thread) / (count * together)
    result = dict(values=values, user_s=round(user, 6), system_s=round(system, 6), thread_s=round(thread, 6),
                  faults=round(faults))
    if exposed and (case["workers"] > 1 or case["servers"]):
        result["exposed_s"] = round(exposed.total / exposed.steps, 6)
    return result


def timeline(step):
    """Kineto's timeline of one step: (name, thread, start, duration), microseconds."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        step()
    events = [e for e in profiler.events() if e.cpu_parent is None or e.name.startswith("gloo")]
    first = min(e.time_range.start for e in events)
    return [(e.name, e.thread, e.time_range.start - first, e.time_range.end - e.time_range.start) for e in events]


def sum_step(case, rank):
    """A collective alone, of as many bytes as the case says; of messages there and back."""
    halves = case["hook"] == "fp16"
    numbers = torch.randn(case["batch"] // (2 if halves else 4)).to(torch.float16 if halves else torch.float32)
    part = torch.empty(len(numbers) // case["workers"])

    def there_and_back():
        for sends in (rank == 0, rank == 1):
            dist.send(numbers, 1 - rank) if sends else dist.recv(numbers, 1 - rank)

    return {"all_reduce": lambda: dist.all_reduce(numbers),
            "all_gather": lambda: dist.all_gather_into_tensor(numbers, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, numbers),
            "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(numbers), numbers),
            "broadcast": lambda: dist.broadcast(numbers, 0), "send": there_and_back}[case["operation"]]


def run_case(case, rank, libraries):
    """`libraries`: bytes of them that are in memory."""
    members = case["workers"] + case["servers"]
    if rank >= members:
        return {}
    if members > 1:
        dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{case['port']}", rank=rank,
                                world_size=members)
    serves, warm_up, result = rank >= case["workers"], 3, {}
    exposed = None
    if case["kind"] == "sum":
        step = sum_step(case, rank)
    else:
        if case["kind"] in PARALLEL:
            import host_parallel
            step = host_parallel.prepare(case, rank)
        else:
            model, loss_of = prepare(case)
        if members > 1:
            dist.barrier()
        if not serves:
            result["probes"] = [probe()]
        if members > 1:
            dist.barrier()
    if serves:
        server = rank - case["workers"]
        flat = torch.cat([p.detach().view(-1) for p in model.parameters()])
        serve = functools.partial(serve_each if case["kind"] in ("async", "bounded") else serve_together, case,
                                  flat.split(shares(case, flat.numel()))[server].clone())
        serve(warm_up)
    else:
        if case["kind"] != "sum" and case["kind"] not in PARALLEL:
            exposed = Exposed(model)
            step = (worker_step if case["servers"] else ring_step)(case, model, loss_of, exposed)
        once = timed(step, warm_up)[-1]
    together = 1 if serves else math.ceil(SHORTEST_S / once)
    least = 5 * LEAST if case["kind"] in ("async", "bounded") else LEAST
    plan = torch.tensor([0 if serves else max(least, min(MOST, int(BUDGET_S / once / together))), together])
    if members > 1:
        dist.broadcast(plan, 0)
    count, together = plan.tolist()
    if serves:
        result.update(serve(count * together) or {})
    else:
        result.update(train(case, step, exposed, count, together))
    # A forked process maps its libraries' pages anew; a training that was not forked has them all.
    unmapped = max(0, libraries - status_bytes("RssFile"))
    result["peak_bytes"] = status_bytes("VmHWM") + unmapped
    if members > 1:
        dist.barrier()
    if not serves and case["kind"] != "sum":
        result["probes"].append(probe())
    if case["timeline"]:
        lines = timeline(step)
        if rank == 0:
            result["timeline"] = lines
    return result


def in_a_process(case, rank):
    """The case's result; nothing when it fails."""
    libraries = status_bytes("RssFile")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        text = json.dumps(run_case(case, rank, libraries))
        with os.fdopen(writing, "w") as out:
            out.write(text)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def main():
    torch.set_num_threads(1)
    print(json.dumps({"torch": torch.__version__, "process_bytes": status_bytes("VmRSS")}), flush=True)
    for line in sys.stdin:
        text = in_a_process(json.loads(line), int(os.environ["RANK"]))
        if not text:
            sys.exit(1)
        print(text, flush=True)


if __name__ == "__main__":
    main()
