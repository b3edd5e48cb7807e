#!/usr/bin/env python3
"""One training step in plain PyTorch, timed: what train_steps.py starts for each of its cases.

    python3 validate/pytorch/one_step.py CASE --seconds S [--kernels FILE] [--trace FILE]

CASE is JSON: model, batch, sequence, precision, execution. Prints one line of JSON: the seconds of steps ("values"), what
the GPU said meanwhile ("state"), and "figures": seconds that the host takes to hand a step over and the device to do its
kernels, how many these are, joules of a step, and bytes.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import time

import models
from train_steps import HALF, TRANSFORMERS


def loss_function(case, torch):
    """A model on the GPU with its optimizer, and a function that gives the loss of its batch."""
    device = torch.device("cuda")
    graphed = case["execution"] == "cuda_graph"
    if case["model"] in TRANSFORMERS:
        shape = TRANSFORMERS[case["model"]]
        if case["model"].startswith("llama"):
            model = models.build_llama(shape, case["sequence"]).to(device)
        else:
            model = models.build_transformer(shape, bert=case["model"].startswith("bert")).to(device)
        tokens, targets = (torch.randint(0, shape[3], (case["batch"], case["sequence"]), device=device)
                           for _ in range(2))
        call = torch.compile(model) if case["execution"] == "compiled" else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True, capturable=graphed)
        return model, optimizer, lambda: call(tokens, targets)
    model = models.build_network(case["model"]).to(device)
    large = case["model"] == "resnet-50"
    images = torch.randn(case["batch"], *((3, 224, 224) if large else (1, 28, 28)), device=device)
    labels = torch.randint(0, 1000 if large else 10, (case["batch"],), device=device)
    if case["precision"] in HALF:  # tensor cores want channels last
        model, images = (t.to(memory_format=torch.channels_last) for t in (model, images))
    call = torch.compile(model) if case["execution"] == "compiled" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    return model, optimizer, lambda: torch.nn.functional.cross_entropy(call(images).float(), labels)


def prepare_step(case, torch):
    """A function that trains one step and returns its loss."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    torch.backends.cudnn.benchmark = True
    model, optimizer, loss_of = loss_function(case, torch)
    model.train()
    graphed = case["execution"] == "cuda_graph"

    def step():
        optimizer.zero_grad(set_to_none=True)
        # A captured cast that is kept for later would be one of this capture.
        with torch.autocast("cuda", getattr(torch, HALF.get(case["precision"], "bfloat16")),
                            enabled=case["precision"] in HALF, cache_enabled=not graphed):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return captured(step, torch) if graphed else step


def captured(step, torch):
    """The step as one CUDA graph, as PyTorch's notes on CUDA graphs have it: warmed up on a stream beside."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def time_steps(step, torch, seconds):
    """Seconds per step, each value over a batch of steps between two events, after warming up."""
    for _ in range(5):
        loss = step()
    torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    once = (time.monotonic() - start) / 3
    count = max(1, min(50, int(0.1 / once)))
    values, end = [], time.monotonic() + seconds
    while len(values) < 10 or (time.monotonic() < end and len(values) < 100):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(count):
            loss = step()
        last.record()
        last.synchronize()
        values.append(first.elapsed_time(last) * 1e-3 / count)
    if not torch.isfinite(loss).item():
        raise RuntimeError("the loss is not finite: these times are of nothing")
    return values


def host_seconds(step, torch):
    """What the host takes to hand one step over to an idle GPU: the least wait for its queue, which is the median."""
    taken = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    torch.cuda.synchronize()
    return statistics.median(taken)


class StateSampler:
    """What nvidia-smi says of the GPU, ten times a second, while the block runs."""

    QUERY = "clocks.sm,power.draw,clocks_throttle_reasons.active"
    REASONS = {0x4: "power", 0x8: "hardware", 0x20: "thermal", 0x40: "hardware_thermal", 0x80: "power_brake"}

    def __enter__(self):
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
        command = ["nvidia-smi", "-i", first, "--query-gpu=" + self.QUERY, "--format=csv,noheader,nounits", "-lms", "100"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        self.lines = []
        if self.process is not None:
            self.process.terminate()
            self.lines = self.process.communicate()[0].splitlines()

    def state(self):
        """The record's state: median clock, mean power, every reason for lower clocks; None where nothing was said."""
        return state_of(self.lines)


def state_of(lines):
    clocks, powers, reasons = [], [], 0
    for line in lines:
        try:
            clock, power, active = (word.strip() for word in line.split(","))
            clocks.append(float(clock))
            reasons |= int(active, 16)
            powers.append(float(power))
        except ValueError:
            continue  # "[N/A]", or a line that was cut off
    if not clocks:
        return None
    state = dict(sm_mhz=statistics.median(clocks),
                 throttle=[word for bit, word in StateSampler.REASONS.items() if reasons & bit])
    if powers:
        state["power_w"] = statistics.mean(powers)
    return state


def kernels_of(step, torch, trace):
    """The kernels of a step by name, with how often and how long they ran: [name, count, seconds], the longest first."""
    from torch.profiler import ProfilerActivity, profile
    steps = 3
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=bool(trace)) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    if trace:
        profiler.export_chrome_trace(trace)
    kernels = collections.defaultdict(lambda: [0, 0.0])
    for event in profiler.events():
        if event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        kernels[event.name][0] += 1
        kernels[event.name][1] += event.time_range.elapsed_us() * 1e-6
    rows = [[name, count / steps, seconds / steps] for name, (count, seconds) in kernels.items()]
    return sorted(rows, key=lambda row: -row[2])


def memory_figures(step, torch):
    """Bytes before a step, at its most, and of the whole device: the allocator's and the driver's counts."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rest = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return dict(allocated_rest_bytes=rest, allocated_peak_bytes=torch.cuda.max_memory_allocated(),
                reserved_peak_bytes=torch.cuda.max_memory_reserved(), device_used_bytes=total - free)


def run_case(case, options):
    import torch
    step = prepare_step(case, torch)
    with StateSampler() as sampler:
        values = time_steps(step, torch, options.seconds)
    figures = memory_figures(step, torch)
    figures["host_s"] = host_seconds(step, torch)
    result = dict(values=values, figures=figures)
    if sampler.state():
        result["state"] = sampler.state()
        if "power_w" in result["state"]:
            figures["energy_j"] = result["state"]["power_w"] * statistics.median(values)
    if options.kernels:
        kernels = kernels_of(step, torch, options.trace)
        with open(options.kernels, "w") as out:
            json.dump(dict(kind="kernels of a step", kernels=kernels), out, indent=0)
        figures["kernels"] = sum(row[1] for row in kernels)
        figures["device_s"] = sum(row[2] for row in kernels)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", type=json.loads)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--kernels")
    parser.add_argument("--trace")
    options = parser.parse_args()
    print(json.dumps(run_case(options.case, options)))


if __name__ == "__main__":
    main()
