#!/usr/bin/env python3
"""Single operators of PyTorch on one core, timed, and the figures of a processor that follow from them.

    /usr/bin/python3 validate/pytorch/host_operators.py -o MEASUREMENTS.json

One process, one thread, no network. From what it measures follow the rates of `processor:` in a device file
(scenarios/hardware/gpus/host-core.yaml), which it prints: each is the median over its operators of their work over
their time without dispatch, in the terms of model/cost/kernels_processor.cpp. Steps of training (host_steps.py) have no
part in it. Exit status: 0 measured, 2 bad usage or no PyTorch.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

import host_lab

LEAST, BUDGET_S = 7, 0.2  # repetitions of a point
BEYOND_CACHES = 96 << 20  # bytes
PROBE = "probe: "
MOVERS = {"packing_rate": ("product_rate",), "reorder_rate": ("convolution_rate", "convolution_gradient_rate")}
CONVOLUTIONS = [  # batch, channels, side, filters, kernel, stride: LeNet, ResNet-18 of 28 x 28 and 224 x 224, ResNet-50
    (64, 1, 28, 20, 3, 1), (256, 1, 28, 20, 3, 1), (64, 20, 13, 50, 5, 1), (256, 20, 13, 50, 5, 1),
    (8, 1, 28, 64, 3, 1), (8, 64, 28, 64, 3, 1), (32, 64, 28, 64, 3, 1), (8, 64, 28, 128, 3, 2), (8, 64, 28, 128, 1, 2),
    (8, 128, 14, 128, 3, 1), (32, 128, 14, 128, 3, 1), (8, 128, 14, 256, 3, 2), (8, 256, 7, 256, 3, 1),
    (32, 256, 7, 256, 3, 1), (8, 256, 7, 512, 3, 2), (8, 512, 4, 512, 3, 1), (32, 512, 4, 512, 3, 1),
    (4, 64, 56, 64, 3, 1), (4, 64, 56, 256, 1, 1), (4, 256, 56, 64, 1, 1), (4, 256, 14, 1024, 1, 1)]
PRODUCTS = [  # rows, outputs, inputs of a linear layer
    (256, 256, 512), (256, 128, 256), (64, 2048, 784), (64, 2048, 2048), (256, 2048, 2048), (128, 128, 800),
    (512, 768, 256), (512, 1024, 256), (512, 256, 1024), (512, 4096, 256), (77, 4096, 256), (1024, 1024, 1024)]


def sampled(calls):
    """Seconds of each repetition after warming up, by one call after the other, round and round."""
    for call in calls if len(calls) > 1 else calls * 2:
        call()
    values, end = [], time.perf_counter() + BUDGET_S
    while len(values) < LEAST or (time.perf_counter() < end and len(values) < 500):
        call = calls[len(values) % len(calls)]
        start = time.perf_counter()
        call()
        values.append(time.perf_counter() - start)
    return values


def copies(make, numbers):
    """As many calls with operands of their own, `numbers` each, as caches do not hold: in a step, an operator finds
    there little of what it needs."""
    return [make() for _ in range(max(2, min(64, math.ceil(BEYOND_CACHES / 4 / numbers))))]


class Points:
    """Measured operators: name, figure that it determines, its work (operations or bytes), dispatches, values."""

    def __init__(self):
        self.all = []

    def add(self, name, figure, work, calls, dispatches=1, traffic=0.0):
        values = sampled(calls)
        self.all.append(dict(name=name, figure=figure, work=work, traffic=traffic, dispatches=dispatches,
                             mean_s=statistics.mean(values), median_s=statistics.median(values), lowest_s=min(values),
                             repetitions=len(values)))

    def both(self, name, figures, works, forward, shape, parameters=(), dispatches=(1, 1)):
        """An operator forward, and its gradient alone; `forward` takes a tensor of the shape."""
        import torch

        def operands():
            x = torch.randn(*shape, requires_grad=True)
            result = forward(x)
            return x, result, torch.randn_like(result)

        sets = copies(operands, 3 * math.prod(shape))
        with torch.no_grad():
            self.add(name, figures[0], works[0], [lambda x=x: forward(x) for x, _, _ in sets], dispatches[0])
        self.add(name + " backward", figures[1], works[1],
                 [lambda s=s: torch.autograd.grad(s[1], [s[0]] + list(parameters), s[2], retain_graph=True)
                  for s in sets], dispatches[1])


def add_dispatch(points):
    """Operators on four numbers each: all of their time is dispatch."""
    import torch
    from torch import nn
    for name, layer, kernels in (("relu", lambda: nn.ReLU(), 2), ("linear", lambda: nn.Linear(4, 4), 4),
                                 ("layer norm", lambda: nn.LayerNorm(4), 3),
                                 ("batch norm", lambda: nn.BatchNorm1d(4), 3)):
        chain = nn.Sequential(*(layer() for _ in range(40)))
        x = torch.randn(2, 4, requires_grad=True)
        points.add(f"40 tiny layers, {name}", "dispatch", 0.0, [lambda: chain(x).sum().backward()], 40 * kernels)
    tensors = [nn.Parameter(torch.randn(4)) for _ in range(100)]
    for tensor in tensors:
        tensor.grad = torch.randn(4)
    points.add("100 tiny tensors, SGD", "dispatch", 0.0, [torch.optim.SGD(tensors, 1e-4, foreach=False).step], 100)


def add_products(points):
    import torch
    for m, n, k in PRODUCTS:
        numbers, shape = m * n + n * k + m * k, f"product {m} x {n} x {k}"
        sets = copies(lambda: (torch.randn(m, k), torch.randn(n, k), torch.randn(m, n)), numbers)
        for suffix, product in (("", lambda x, w, y: x @ w.t()), (" data gradient", lambda x, w, y: y @ w),
                                (" weight gradient", lambda x, w, y: y.t() @ x)):
            points.add(shape + suffix, "product_rate", 2.0 * m * n * k, [lambda s=s: product(*s) for s in sets],
                       traffic=4.0 * numbers)
    for batch, length, dim in ((16, 128, 64), (32, 128, 64)):
        sets = copies(lambda: (torch.randn(batch, length, dim), torch.randn(batch, length, dim)),
                      batch * length * (2 * dim + length))
        points.add(f"{batch} products {length} x {length} x {dim}", "product_rate",
                   2.0 * batch * length * length * dim, [lambda s=s: s[0] @ s[1].transpose(1, 2) for s in sets],
                   traffic=4.0 * batch * length * (2 * dim + length))


def process_bytes():
    """Memory of the process when the libraries have made room for themselves: after a product and a convolution."""
    import torch
    x = torch.randn(1024, 1024)
    x @ x
    image = torch.randn(16, 64, 28, 28, requires_grad=True)
    torch.nn.functional.conv2d(image, torch.randn(64, 64, 3, 3), padding=1).sum().backward()
    return host_process.status_bytes("VmRSS") - 4 * (x.numel() + 2 * image.numel())


def padded(channels):
    """Whole vectors of channels over channels, as oneDNN's blocked kernels compute them."""
    return math.ceil(channels / 16) * 16 / channels


def add_convolutions(points):
    import torch
    forward, gradient = torch.nn.functional.conv2d, torch.ops.aten.convolution_backward
    for n, c, side, k, r, stride in CONVOLUTIONS:
        pad, out = r // 2, (side + 2 * (r // 2) - r) // stride + 1
        x_shape, y_shape, w_shape = (n, c, side, side), (n, k, out, out), (k, c, r, r)
        numbers = sum(math.prod(shape) for shape in (x_shape, y_shape, w_shape))
        sets = copies(lambda: [torch.randn(*shape) for shape in (x_shape, w_shape, y_shape)], numbers)
        work, traffic = 2.0 * math.prod(y_shape) * c * r * r, 4.0 * numbers
        name = f"convolution {r} x {r}, {n} x {c} x {side} to {k}, stride {stride}"
        figures = ("convolution_rate", "convolution_gradient_rate")
        if is_product(r, stride):
            figures = ("product_rate",) * 2
        else:
            work *= padded(k) * (padded(c) if c > 3 else 1.0)
        points.add(name, figures[0], work, [lambda s=s: forward(s[0], s[1], stride=stride, padding=pad) for s in sets],
                   traffic=traffic)
        for suffix, mask in ((" data gradient", [True, False, False]), (" weight gradient", [False, True, False])):
            if c == 1 and mask[0]:
                continue  # images have no gradient
            points.add(name + suffix, figures[1], work,
                       [lambda s=s: gradient(s[2], s[0], s[1], None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1,
                                             mask) for s in sets], traffic=traffic)


def is_product(kernel, stride):
    """PyTorch gives these to the library of products, image by image (aten::_slow_conv2d_forward)."""
    return kernel == 1 and stride == 1


def add_loops(points):
    import torch
    from torch.nn import functional as f
    for shape in ((8, 64, 28, 28), (32, 64, 28, 28), (8, 512, 4, 4), (64, 20, 26, 26), (8, 128, 14, 14)):
        size, name = 4.0 * math.prod(shape), " x ".join(map(str, shape[:3]))
        norm = torch.nn.BatchNorm2d(shape[1])
        points.both(f"batch norm {name}", ("norm_rate", "norm_gradient_rate"), (3 * size, 5 * size), norm, shape,
                    norm.parameters(), (2, 1))
        points.both(f"relu {name}", ("l2_bandwidth",) * 2, (2 * size, 3 * size), f.relu, shape)
        sums = copies(lambda: (torch.randn(*shape), torch.randn(*shape)), 2 * math.prod(shape))
        points.add(f"sum in place {name}", "l2_bandwidth", 3 * size, [lambda s=s: s[0].add_(s[1]) for s in sums])
        if shape[2] >= 14:
            points.both(f"average pool {name}", ("pooling_rate",) * 2, (1.25 * size, 1.25 * size),
                        lambda x: f.avg_pool2d(x, 2), shape)
            points.both(f"max pool {name}", ("pooling_rate", "l2_bandwidth"), (1.75 * size, 1.75 * size),
                        lambda x: f.max_pool2d(x, 2), shape)
    for shape in ((512, 256), (512, 1024), (2048, 128)):
        size, name = 4.0 * math.prod(shape), " x ".join(map(str, shape))
        norm = torch.nn.LayerNorm(shape[1])
        points.both(f"layer norm {name}", ("norm_rate", "norm_gradient_rate"), (2 * size, 4 * size), norm, shape,
                    norm.parameters(), (1, 2))
        points.both(f"softmax {name}", ("transcendental_rate",) * 2, (2 * size, 3 * size), lambda x: f.softmax(x, -1),
                    shape)
        points.both(f"gelu {name}", ("transcendental_rate",) * 2, (2 * size, 3 * size), f.gelu, shape)
        inputs = copies(lambda: torch.randn(*shape), math.prod(shape))
        points.add(f"dropout {name}", "random_rate", 2.25 * size, [lambda x=x: f.dropout(x, 0.1) for x in inputs])
    for elements in (1 << 18, 1 << 20, 1 << 24, 1 << 25):
        def updated():
            tensor = torch.nn.Parameter(torch.randn(elements))
            tensor.grad = torch.randn(elements)
            return torch.optim.SGD([tensor], 1e-4, foreach=False).step

        points.add(f"SGD {elements}", "l2_bandwidth" if elements <= 1 << 20 else "memory_bandwidth", 12.0 * elements,
                   copies(updated, 2 * elements))
    for elements in (1 << 18, 1 << 20, 1 << 22):
        sets = copies(lambda: (torch.randn(elements), torch.randn(elements).half()), 1.5 * elements)
        points.add(f"to fp16, divided, {elements}", "conversion_rate", 6.0 * elements,
                   [lambda s=s: s[0].to(torch.float16).div_(2) for s in sets], 2)
        points.add(f"from fp16 {elements}", "l2_bandwidth", 6.0 * elements,
                   [lambda s=s: s[0].copy_(s[1]) for s in sets])
    tables = copies(lambda: torch.randn(4096, 256), 4096 * 256)
    rows = torch.randint(0, 4096, (2048,))
    points.add("embedding of 2048 tokens", "l2_bandwidth", 2.0 * 4 * 2048 * 256,
               [lambda table=table: f.embedding(rows, table) for table in tables])


def add_probes(points):
    """Those by which host_process.py tells how fast a core is beside a run, as it measures them."""
    probes = [host_process.probe() for _ in range(15)]
    for name in probes[0]:
        values = [probe[name] * 1e-3 for probe in probes]
        points.all.append(dict(name=PROBE + name, figure="probe", work=0.0, traffic=0.0, dispatches=1,
                               median_s=statistics.median(values), lowest_s=min(values), repetitions=len(values)))


def add_fresh(points):
    """Cost of memory newly allocated by the system: tensors that malloc maps for themselves, less the same loop over a
    tensor that is there (mallopt(3), M_MMAP_THRESHOLD: always above 32 MiB)."""
    import torch
    for mebibytes in (36, 48, 64, 96, 128):
        elements = mebibytes << 18
        kept = torch.empty(elements)
        before, after = sampled([lambda: kept.fill_(1.0)]), sampled([lambda: torch.empty(elements).fill_(1.0)])
        extra = max(statistics.median(after) - statistics.median(before), 1e-6)
        points.all.append(dict(name=f"fresh tensor of {mebibytes} MiB", figure="fresh_rate", work=4.0 * elements,
                               traffic=0.0, dispatches=0, median_s=extra, lowest_s=min(after) - min(before),
                               repetitions=len(after)))


def add_waits(points):
    """By how much longer part of a transformer's layer computes after the core has waited: beside it without waiting,
    before and after, 24 layers each."""
    import torch
    tokens, hidden, rounds = 256, 384, 20
    weights = [[torch.randn(hidden, hidden) for _ in range(4)] for _ in range(16)]
    x = torch.randn(tokens, hidden)

    def computed(products, wait_s):
        """Mean seconds of the thread for this many products with their norms."""
        took = []
        for layer in range(24):
            if wait_s:
                time.sleep(wait_s)
            start, y = time.thread_time(), x
            for weight in weights[layer % len(weights)][:products]:
                y = torch.nn.functional.gelu(torch.nn.functional.layer_norm(y, (hidden,)) @ weight)
            took.append(time.thread_time() - start)
        return statistics.mean(took)

    with torch.no_grad():
        for products in (1, 2, 4):
            for wait_ms in (4, 8):
                before, values = computed(products, 0.0), []
                for _ in range(rounds):
                    waited, after = computed(products, wait_ms * 1e-3), computed(products, 0.0)
                    values.append(waited - (before + after) / 2.0)
                    before = after
                points.all.append(dict(name=f"{products} products after {wait_ms} ms", figure="after_wait", work=0.0,
                                       traffic=0.0, dispatches=0, median_s=statistics.median(values),
                                       lowest_s=min(values), repetitions=rounds))


# Fresh memory first: afterwards the heap has room for anything.
PARTS = (add_fresh, add_dispatch, add_products, add_convolutions, add_loops, add_waits, add_probes)


def seconds(point):
    """The mean: what a neighbour takes now and then is a part of every step, and none of a median."""
    return point.get("mean_s", point["median_s"])


def fitted(points):
    """The figures, in seconds, operations and bytes a second, of the parts that were measured."""
    measured = {p["figure"] for p in points}
    figures = {}
    if "after_wait" in measured:
        figures["after_wait"] = statistics.median(p["median_s"] for p in points if p["figure"] == "after_wait")
    if "dispatch" not in measured:  # which all others have a part of
        return figures
    figures["dispatch"] = statistics.median(seconds(p) / p["dispatches"] for p in points if p["figure"] == "dispatch")

    def rest(point, mover):
        """Time without dispatch and what moves tensors; where that is all, a tenth stands for the rest."""
        other = figures["dispatch"] * point["dispatches"] + point["traffic"] / mover
        return max(seconds(point) - other, 0.1 * seconds(point))

    def rate(figure, mover=math.inf):
        return statistics.median(p["work"] / rest(p, mover) for p in points if p["figure"] == figure)

    for figure in ("norm_rate", "norm_gradient_rate", "transcendental_rate", "pooling_rate", "random_rate",
                   "l2_bandwidth", "memory_bandwidth", "conversion_rate", "fresh_rate"):
        if figure in measured:
            figures[figure] = rate(figure)
    # Compute, and concurrent moves of its tensors, together.
    for mover, names in MOVERS.items():
        own = [p for p in points if p["figure"] in names]
        if not own:
            continue

        def misfit(speed):
            rates = {name: rate(name, speed) for name in names}
            return sum(abs(math.log(seconds(p) / (figures["dispatch"] * p["dispatches"] + p["traffic"] / speed +
                                                     p["work"] / rates[p["figure"]]))) for p in own)

        figures[mover] = min((1e9 * 1.1**i for i in range(50)), key=misfit)
        for name in names:
            figures[name] = rate(name, figures[mover])
    return figures


def misfits(points, figures):
    """By figure: number of operators, and the median of |ln(measured / formula)|."""
    table = {}
    for p in points:
        if p["figure"] not in figures or p["figure"] == "after_wait":
            continue
        work = p["work"] / figures[p["figure"]] if p["work"] else 0.0
        mover = next((figures[mover] for mover, names in MOVERS.items() if p["figure"] in names), math.inf)
        predicted = figures["dispatch"] * p["dispatches"] + work + p["traffic"] / mover
        table.setdefault(p["figure"], []).append(abs(math.log(seconds(p) / predicted)))
    return {figure: (len(errors), statistics.median(errors)) for figure, errors in table.items()}


def figure_text(figure, value):
    if figure in ("dispatch", "after_wait"):
        return f"{value * 1e6:.2f} us"
    operations = figure in ("product_rate", "convolution_rate", "convolution_gradient_rate")
    return f"{value * 1e-9:.3g} {'GFLOP/s' if operations else 'GB/s'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="MEASUREMENTS.json; kept if it is there")
    options = parser.parse_args()
    if options.output.exists():
        document = json.loads(options.output.read_text())
    else:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # which OpenBLAS reads when it is loaded
        if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # which the C library reads when it is loaded
            os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, **host_lab.MEMORY))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        try:
            import torch
        except ImportError:
            print(f"{sys.executable} has no PyTorch (Debian: apt install python3-torch, and /usr/bin/python3)",
                  file=sys.stderr)
            return 2
        global host_process
        import host_process
        torch.set_num_threads(1)
        torch.manual_seed(1)
        size = process_bytes()
        points = Points()
        for part in PARTS:
            part(points)
        document = dict(kind="host operators", torch=torch.__version__, date=time.strftime("%Y-%m-%d", time.gmtime()),
                        processor=host_lab.processor(), process_bytes=size, points=points.all)
        lines = ",\n".join("    " + json.dumps(point) for point in points.all)
        head = json.dumps({key: value for key, value in document.items() if key != "points"})
        options.output.write_text(head[:-1] + ', "points": [\n' + lines + "\n]}\n")
    figures = fitted(document["points"])
    print(f"process: {document['process_bytes'] / (1 << 20):.0f} MiB  # with the libraries' own buffers")
    errors = misfits(document["points"], figures)
    for figure, value in figures.items():
        count, error = errors.get(figure, (0, 0.0))
        of_all = dict(packing_rate="# of all products", reorder_rate="# of all convolutions").get(figure, "")
        far = f"# {count} operators, half of them within {error:.0%}" if count else of_all
        print(f"{figure}: {figure_text(figure, value)}  {far}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
