#!/usr/bin/env python3
"""One training step in plain PyTorch, timed: what train_steps.py starts for each of its cases.

    python3 validate/pytorch/one_step.py CASE --seconds S [--kernels FILE] [--trace FILE] [--memory FILE] [--wait]
    python3 validate/pytorch/one_step.py CASE --for-profiler
    python3 validate/pytorch/one_step.py CASE --dry-run

CASE is JSON: one of step_cases.py. With --wait it goes on from loading PyTorch when it reads a line. --memory lists the
allocations at the peak of a step; --dry-run trains two steps of a tiny model on the CPU. With --for-profiler one step
alone runs between the marks that a profiler starts and stops at: `ncu --profile-from-start off --metrics dram__bytes_read.sum,dram__bytes_write.sum --csv` counts what
its kernels read and write. Prints one line of JSON: the seconds of steps ("values"), what
the GPU said meanwhile ("state"), and "figures": seconds that the host takes to hand a step over and the device to do its
kernels, how many these are, joules of a step, and bytes.
"""

import argparse
import collections
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import models
from step_cases import HALF, LLAMAS, TRANSFORMERS, compiled_as_one, memory_format_of

TINY = dict(layers=2, hidden=256, heads=4, vocabulary=512, wide=512, kv_heads=2, head=64)  # Llama of a dry run


def loss_function(case, torch, device):
    """A model on the device with its optimizer, and a function that gives the loss of its batch."""
    compiles = case["execution"] == "compiled" and hasattr(torch, "compile")
    name = case["model"]
    if name in TRANSFORMERS or name in LLAMAS:
        import finetune
        shape = LLAMAS.get(name) or TRANSFORMERS[name]
        if device.type == "cpu":
            case = dict(case, layers=2, sequence=32, batch=2)
            shape = shape._replace(**TINY) if name in LLAMAS else (2, 256, 4, 512, 32)
        layers = case.get("layers", shape[0])
        kind = torch.get_default_dtype()
        if "weights" in case or "lora" in case or "offload" in case:
            torch.set_default_dtype(getattr(torch, HALF[case["precision"]]))
        # Weights are drawn where they stay; before 2.0 a device is no context.
        with device if hasattr(device, "__enter__") else contextlib.nullcontext():
            if name in LLAMAS:
                model = models.build_llama(shape._replace(layers=layers), case["sequence"], case.get("recompute", "none"),
                                           case["precision"] == "fp8", finetune.loss_of(case, shape, device))
            else:
                model = models.build_transformer((layers, *shape[1:]), bert=name.startswith("bert"))
        torch.set_default_dtype(kind)
        if "lora" in case:
            finetune.adapt(model, case)
        tokens, targets = (torch.randint(0, shape[3], (case["batch"], case["sequence"]), device=device)
                           for _ in range(2))
        call = model
        if compiles:
            if compiled_as_one(case):
                call = torch.compile(model)
            else:
                for block in model.blocks:
                    block.compile()
        return model, finetune.optimizer_of(case, model), lambda: call(tokens, targets)
    side, batch = (224, case["batch"]) if device.type == "cuda" else (32, 2)
    model = models.build_network(case["model"], side).to(device)
    large = case["model"] in ("resnet-50", "vgg-16")
    images = torch.randn(batch, *((3, side, side) if large else (1, 28, 28)), device=device)
    labels = torch.randint(0, 1000 if large else 10, (batch,), device=device)
    if memory_format_of(case) == "nhwc":
        model, images = (t.to(memory_format=torch.channels_last) for t in (model, images))
    call = torch.compile(model) if compiles else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    return model, optimizer, lambda: torch.nn.functional.cross_entropy(call(images).float(), labels)


def prepare_step(case, torch, device):
    """A function that trains one step and returns its loss, and the model."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    torch.backends.cudnn.benchmark = True
    model, optimizer, loss_of = loss_function(case, torch, device)
    model.train()
    graphed = case["execution"] == "cuda_graph" and device.type == "cuda"
    cast = case["precision"] in (*HALF, "fp8") and "weights" not in case and "offload" not in case

    def step():
        optimizer.zero_grad(set_to_none=True)
        # A captured cast that is kept for later would be one of this capture.
        with torch.autocast(device.type, getattr(torch, HALF.get(case["precision"], "bfloat16")), enabled=cast,
                            cache_enabled=not graphed):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return (captured(step, torch) if graphed else step), model


def dry_run(case, torch):
    """Two steps of a tiny model on the CPU, all of whose trained weights get gradients."""
    torch.set_num_threads(1)
    step, model = prepare_step(case, torch, torch.device("cpu"))
    values = []
    for _ in range(2):
        start = time.perf_counter()
        loss = step()
        values.append(time.perf_counter() - start)
    trained = [each for each in model.parameters() if each.requires_grad]
    if not trained or any(each.grad is None for each in trained) or not torch.isfinite(loss).item():
        raise RuntimeError("a weight that is trained has no gradient, or the loss is not finite")
    return dict(values=values, figures=dict(device_used_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


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

    replay.step = step  # holds the weights and the batch, in whose memory the graph works
    return replay


def warm_up(step, torch):
    """Compiles what is to be compiled and fills caches; returns the seconds of a step."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.monotonic() - start) / 3


def time_steps(step, torch, once, seconds):
    """Seconds per step, each value over a batch of steps between two events; `once`: those of a step, roughly."""
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
    """Host time to hand one step over to an idle GPU: the least wait for its queue, which is the median."""
    taken = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    torch.cuda.synchronize()
    return statistics.median(taken)


class StateSampler:
    """Readings of nvidia-smi, ten times a second, while the block runs."""

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


def kernels_of(step, torch, steps, trace):
    """The kernels of a step: [name, count, seconds, operator, shapes], the longest first. `operator` is PyTorch's that
    launched it, and `shapes` those of its operands; both are empty within a CUDA graph. `steps`: how many are looked
    at."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    if trace:
        profiler.export_chrome_trace(trace)
    kernels, launched = collections.defaultdict(lambda: [0, 0.0]), collections.defaultdict(lambda: [0, 0.0])
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not is_annotation(event):
            add_kernel(kernels[event.name], event.time_range.elapsed_us())
        if not event.kernels or is_annotation(event) or event.name == "Command Buffer Full":
            continue  # the last is a wait of the profiler's own
        launcher = event
        while launcher.name.startswith("cu") and launcher.cpu_parent:  # a call of CUDA itself
            launcher = launcher.cpu_parent
        for kernel in event.kernels:
            add_kernel(launched[kernel.name, launcher.name, str(launcher.input_shapes)], kernel.duration)
    for (name, *_), (count, seconds) in launched.items():  # what is left was launched by no operator
        kernels[name][0] -= count
        kernels[name][1] -= seconds
    rows = [[*key, count / steps, seconds / steps] for key, (count, seconds) in launched.items()]
    rows += [[name, "", "", count / steps, seconds / steps] for name, (count, seconds) in kernels.items() if count > 0]
    rows = [[name, count, seconds, operator, shapes] for name, operator, shapes, count, seconds in rows]
    return sorted(rows, key=lambda row: -row[2])


def is_annotation(event):
    """A span of kernels that the program named, which is none itself."""
    return event.is_user_annotation if hasattr(event, "is_user_annotation") else "#" in event.name


def attention_of(kernels):
    """Vendor of the fused attention kernels, by their names; None: none ran."""
    for word, library in (("sdpa", "cudnn"), ("flash_", "flash_2"), ("fmha", "memory_efficient")):
        if any(word in row[0] for row in kernels):
            return library
    return None


def add_kernel(entry, microseconds):
    entry[0] += 1
    entry[1] += microseconds * 1e-6


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


def allocations_at_peak(events, rest):
    """Peak allocation of a step: bytes, and [bytes, blocks, place] of all that it allocated itself, by
    the line of ours that did so. `events` are those of the allocator's history, `rest` the bytes before the step."""
    most, at, now = rest, 0, rest
    for index, event in enumerate(events):
        now += {"alloc": event["size"], "free_requested": -event["size"]}.get(event["action"], 0)
        if now > most:
            most, at = now, index + 1
    live = {}
    for event in events[:at]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_requested":
            live.pop(event["addr"], None)
    places = collections.defaultdict(lambda: [0, 0])
    for event in live.values():
        files = [(os.path.basename(frame["filename"]), frame["line"]) for frame in event.get("frames", ())]
        ours = [f"{name}:{line}" for name, line in files if name in ("models.py", "finetune.py", "one_step.py")]
        entry = places[ours[0] if ours else ""]
        entry[0] += event["size"]
        entry[1] += 1
    return most, sorted(([*entry, place] for place, entry in places.items()), reverse=True)


def record_peak(step, torch, path):
    """Writes what is allocated at the peak of a step; returns its bytes, None where PyTorch keeps no history."""
    memory = torch.cuda.memory
    if not hasattr(memory, "_record_memory_history"):
        return None
    torch.cuda.synchronize()
    rest = torch.cuda.memory_allocated()
    try:
        memory._record_memory_history(max_entries=500000, stacks="python")
    except TypeError:  # PyTorch 2.0 has other parameters
        return None
    step()
    torch.cuda.synchronize()
    events = memory._snapshot()["device_traces"][torch.cuda.current_device()]
    memory._record_memory_history(enabled=None)
    most, blocks = allocations_at_peak(events, rest)
    with open(path, "w") as out:
        kind = "memory at the peak of a step"
        json.dump(dict(kind=kind, peak_bytes=most, before_bytes=rest, blocks=blocks), out, indent=0)
    return most


def mark_step(step, torch):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    return {}


def run_case(case, options):
    import torch
    if case["execution"] == "compiled" and not options.dry_run:
        import torch._inductor.compile_fx  # noqa: F401  what torch.compile would load then
    if options.wait:
        sys.stdin.readline()
    if options.dry_run:
        return dry_run(case, torch)
    step, _ = prepare_step(case, torch, torch.device("cuda"))
    if options.for_profiler:
        return mark_step(step, torch)
    once = warm_up(step, torch)
    with StateSampler() as sampler:
        values = time_steps(step, torch, once, options.seconds)
    figures = memory_figures(step, torch)
    figures["host_s"] = host_seconds(step, torch)
    if options.memory and case["execution"] != "cuda_graph":
        figures["snapshot_peak_bytes"] = record_peak(step, torch, options.memory)
    result = dict(values=values, figures=figures)
    if sampler.state():
        result["state"] = sampler.state()
        if "power_w" in result["state"]:
            figures["energy_j"] = result["state"]["power_w"] * statistics.median(values)
    if options.kernels:
        kernels = kernels_of(step, torch, 1 if once > 0.01 else 3, options.trace)
        with open(options.kernels, "w") as out:
            json.dump(dict(kind="kernels of a step", kernels=kernels), out, indent=0)
        figures["kernels"] = sum(row[1] for row in kernels)
        figures["device_s"] = sum(row[2] for row in kernels)
        result["attention"] = attention_of(kernels)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", type=json.loads)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--kernels")
    parser.add_argument("--trace")
    parser.add_argument("--memory")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--for-profiler", action="store_true")
    options = parser.parse_args()
    print(json.dumps(run_case(options.case, options)))


if __name__ == "__main__":
    main()
