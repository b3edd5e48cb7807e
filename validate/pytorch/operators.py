#!/usr/bin/env python3
"""Measures the operators of a table of cases with PyTorch's kernels on this GPU: GEMMs and attention.

    python3 validate/pytorch/operators.py TABLE.csv -o DIR [--node h200-x1] [--minutes N]
    python3 validate/pytorch/operators.py --set operators|block_scaled|copies -o DIR [--dry-run]

TABLE has the columns of `foretrain validate --cases`: workload.operator.kind and its keys. Of each row two are written to
DIR/cases_operators.csv: a burst (workload.operator.clock: boost), which is three warm-ups and six replays of a CUDA graph
after a pause, and what the board keeps up (sustained), the second half of 0.4 s. Operands are normal random numbers;
there are enough of them that each launch finds its own in memory, not in the L2. A product in fp8 is measured without
the cast of A and, if the row does not say workload.operator.cast, again with it. Rows already there are kept, so that a
run that was stopped goes on; rows that cannot be measured are named.

--set takes the rows of operator_cases.py, to DIR/cases_SET.csv: norms, softmax, cross-entropy and Adam as PyTorch has them;
GEMMs in MXFP8 and NVFP4; copies between host and GPU (best of five), with AdamW on the CPU in DIR/cpu_adam.jsonl.
--dry-run does each once on the CPU, tiny, and says what only a GPU can do.

Exit status: 0 all measured (of a set: all that this GPU and PyTorch have), 1 some were not, 2 no PyTorch or no GPU, or
bad usage, 130 interrupted.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import sys
import time

import operator_cases
from operator_cases import FORMATS, KEY, Unmeasured
from train_steps import append_line, known_results, libraries_at_hand, torch_on_gpu, write_table

SUSTAINED_S, LEAST_S = 0.4, 50e-6  # shorter operators than the second seldom draw the power that a board has
MOST_SKIPPED = 8  # errors of the device, each of which needs a new process


def number(row, key, default=None):
    text = row.get(KEY + key) or default
    if text is None:
        raise Unmeasured(f"{KEY}{key} is missing")
    return int(text)


def flag(row, key):
    return row.get(KEY + key) == "true"


def copies_of(size, torch):
    """Sets of operands of `size` bytes that together are twice the L2, 24 at most."""
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    return max(2, min(24, -(-2 * l2 // size)))


def product(row, torch):
    """Functions that each launch the product once, with operands of their own."""
    if flag(row, "transpose_a"):
        raise Unmeasured("transpose_a")
    m, n, k = (number(row, key) for key in "mnk")
    precision = row[KEY + "precision"]
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    half = torch.bfloat16
    kind = half if precision == "fp8" else getattr(torch, FORMATS[precision])
    count = copies_of((m * k + n * k + m * n) * (1 if precision == "fp8" else kind.itemsize), torch)
    a = [torch.randn(m, k, device="cuda", dtype=kind) for _ in range(count)]
    b = [torch.randn(n, k, device="cuda", dtype=kind) for _ in range(count)]
    if precision != "fp8":
        return [lambda x=x, w=w: torch.nn.functional.linear(x, w) for x, w in zip(a, b)]
    one = torch.ones((), device="cuda")
    b8 = [w.to(torch.float8_e4m3fn) for w in b]
    if flag(row, "cast"):
        return [lambda x=x, w=w: torch._scaled_mm((x * one).to(torch.float8_e4m3fn), w.t(), one, one, out_dtype=half)
                for x, w in zip(a, b8)]
    a8 = [x.to(torch.float8_e4m3fn) for x in a]
    return [lambda x=x, w=w: torch._scaled_mm(x, w.t(), one, one, out_dtype=half) for x, w in zip(a8, b8)]


def attention(row, torch):
    """As product(): fused attention, by the library that workload.operator.attention names (flash: FlashAttention-2;
    flash_3, which PyTorch does not have, cuDNN's, the same algorithm)."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "flash_2": SDPBackend.FLASH_ATTENTION,
                "flash_3": SDPBackend.CUDNN_ATTENTION, "memory_efficient": SDPBackend.EFFICIENT_ATTENTION,
                "standard": SDPBackend.MATH}
    batch, heads, sequence, dim = (number(row, key) for key in ("batch", "heads", "sequence", "head_dim"))
    kv_heads = number(row, "kv_heads", heads)
    kind = getattr(torch, FORMATS[row[KEY + "precision"]])
    causal, backward = flag(row, "causal"), flag(row, "backward")

    def one_set():
        q, k, v = (torch.randn(batch, h, sequence, dim, device="cuda", dtype=kind, requires_grad=backward)
                   for h in (heads, kv_heads, kv_heads))

        def forward():
            with sdpa_kernel(backends[row.get(KEY + "attention") or "flash"]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                        enable_gqa=kv_heads != heads)

        if not backward:
            return forward
        y = forward()
        dy = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

    size = batch * sequence * dim * (heads + kv_heads) * 2 * kind.itemsize
    return [one_set() for _ in range(min(4, copies_of(size, torch)))]


KINDS = {"matmul": product, "attention": attention}


def launches_of(row, torch):
    """Functions that each launch the row's operator once."""
    if row.get(KEY + "precision") in ("mxfp8", "nvfp4"):
        return operator_cases.block_scaled_launches(row, 4)
    if row.get("function") == "adamw":
        return operator_cases.adamw_launches(row, operator_cases.device())
    if "function" in row:
        size = int(row[KEY + "rows"]) * int(row[KEY + "columns"]) * 4
        return operator_cases.tensor_launches(row, 1 if operator_cases.device() == "cpu" else min(4, copies_of(size, torch)))
    return KINDS[row[KEY + "kind"]](row, torch)


def recorded(launches, torch):
    """All of them as one CUDA graph, on the current stream: that on which gradients were made."""
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for launch in launches:
            launch()
    return graph


def seconds_of(graph, replays, torch):
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(replays):
        graph.replay()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) * 1e-3 / replays


def times_of(row, torch):
    """Seconds of one launch, in a burst and sustained (None where it is too short to matter)."""
    with torch.cuda.stream(torch.cuda.Stream()):
        launches = launches_of(row, torch)
        graph = recorded(launches, torch)
    time.sleep(0.02)
    for _ in range(3):
        graph.replay()
    burst = seconds_of(graph, 6, torch)
    if burst / len(launches) < LEAST_S:
        return burst / len(launches), None
    per_batch = max(1, round(0.02 / burst))
    values, end = [], time.monotonic() + SUSTAINED_S
    while time.monotonic() < end or len(values) < 4:
        values.append(seconds_of(graph, per_batch, torch))
    return burst / len(launches), statistics.median(values[len(values) // 2:]) / len(launches)


def wall_seconds(run, count):
    """The least of `count` runs after one that is not counted."""
    run()
    values = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        values.append(time.perf_counter() - start)
    return min(values)


def timed(row, torch, dry_run):
    """[ending of the case's name, clock, seconds] of a row, as it is measured."""
    if "copies" in row:
        return [("", None, wall_seconds(operator_cases.transfer(row, dry_run), 1 if dry_run else 5))]
    if dry_run:
        return [("-boost", "boost", wall_seconds(launches_of(operator_cases.shrunk(row), torch)[0], 1))]
    burst, sustained = times_of(row, torch)
    return [("-boost", "boost", burst), ("-sustained", "sustained", sustained)]


def measure_cpu_adam(path, about, dry_run):
    """Appends records of AdamW on the CPU; the names of those that could not be."""
    known, failed = known_results(path), []
    for row in operator_cases.cpu_adam_rows(libraries_at_hand()):
        if row["case"] in known:
            continue
        try:
            step, = operator_cases.adamw_launches(operator_cases.shrunk(row) if dry_run else row, "cpu")
            values = [wall_seconds(step, 1) for _ in range(1 if dry_run else 3)]
        except (Unmeasured, RuntimeError, MemoryError) as error:
            failed.append(f"{row['case']}: {error}")
            continue
        parameters = {key[len(KEY):]: value for key, value in row.items() if key.startswith(KEY)}
        append_line(path, json.dumps(dict(suite="cpu_adam", name=row["case"], status="measured", values=values, unit="s",
                                          parameters=dict(parameters, implementation=row["implementation"]), **about)))
    return failed


def variants(row):
    """The row itself; a product in fp8 without and with the cast of its input, where the row does not say."""
    if row.get(KEY + "kind") == "matmul" and row.get(KEY + "precision") == "fp8" and not row.get(KEY + "cast"):
        return [dict(row, case=row["case"] + suffix, **{KEY + "cast": cast})
                for suffix, cast in (("", "false"), ("-cast", "true"))]
    return [row]


def rows_of(path):
    with open(path, newline="") as table:
        return [variant for row in csv.DictReader(table) for variant in variants(row)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path, nargs="?")
    parser.add_argument("--set", choices=operator_cases.SETS, help="instead of a table: rows of operator_cases.py")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder for the results")
    parser.add_argument("--node", default="this-machine.yaml", help="cluster.node of the results")
    parser.add_argument("--minutes", type=float, default=10, help="after which no further row is begun (10)")
    parser.add_argument("--skip", action="append", default=[], help="a case that is left out")
    parser.add_argument("--dry-run", action="store_true", help="each row once on the CPU, tiny")
    options = parser.parse_args()
    if bool(options.set) == bool(options.table):
        parser.error("a table or --set: which operators?")
    if options.table and not options.table.is_file():
        parser.error(f"{options.table}: no such file")
    if options.dry_run:
        import torch
    else:
        torch = torch_on_gpu(parser.error)
    rows = operator_cases.SETS[options.set]() if options.set else rows_of(options.table)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"cases_{options.set or 'operators'}.csv"
    columns = ["case", "group", "cluster.node", "cluster.gpus_per_node"] if options.set else []
    columns += [key for row in rows for key in row if key not in (*operator_cases.HIDDEN, "measured.time", "source")]
    columns = list(dict.fromkeys([*columns, *(KEY + key for key in ("cast", "clock", "launch")), "measured.time", "source"]))
    known = {}
    if path.exists():
        with open(path, newline="") as table:
            known = {row["case"]: row for row in csv.DictReader(table) if row.get("source")}
    gpu = "no GPU (dry run)" if options.dry_run else torch.cuda.get_device_name()
    about = dict(pytorch=torch.__version__, cuda=torch.version.cuda, gpu=gpu, date=time.strftime("%Y-%m-%d"))
    source = "PyTorch {pytorch}, CUDA {cuda}, {gpu}, {date}".format(**about)

    def keep():
        write_table(path, columns, ({key: row.get(key, "") for key in columns} for row in known.values()))

    failed, absent, end = 0, 0, time.monotonic() + 60 * options.minutes
    for row in rows:
        if row["case"] in known or row["case"] + "-boost" in known:
            continue
        if row["case"] in options.skip or time.monotonic() > end:
            failed += 1
            continue
        try:
            times = timed(row, torch, options.dry_run)
        except Unmeasured as error:
            absent += 1
            print(f"{row['case']}: {error}", file=sys.stderr)
            continue
        except (KeyError, ValueError, RuntimeError) as error:
            failed += 1
            print(f"{row['case']}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
            if isinstance(error, RuntimeError) and not options.dry_run and not isinstance(error, torch.cuda.OutOfMemoryError):
                # A graph that was not recorded leaves PyTorch's generator behind, and other errors the device: start anew.
                keep()
                left = f"{(end - time.monotonic()) / 60:.3f}"
                words = [sys.executable, *sys.argv, "--skip", row["case"], "--minutes", left]
                if len(options.skip) < MOST_SKIPPED:
                    os.execv(sys.executable, words)
            continue
        finally:
            torch.cuda.empty_cache()
        for ending, clock, seconds in times:
            if seconds is not None:
                name = row["case"] + ending
                known[name] = {key: value for key, value in row.items()
                               if "workload.tasks" not in row or not key.startswith(KEY)}
                known[name].update({"case": name, "cluster.node": options.node, "cluster.gpus_per_node": "1",
                                    "measured.time": f"{seconds * 1e6:.3f} us", "source": source})
                if "workload.tasks" not in row:
                    known[name].update({KEY + "clock": clock, KEY + "launch": "graph"})
        if options.set or len(known) % 20 == 0:  # a part of on_gpu.sh may be interrupted at any time
            keep()
    keep()
    print(f"{len(known)} rows in {path}; {failed + absent} not measured", file=sys.stderr)
    if options.set == "copies":
        without = measure_cpu_adam(options.output / "cpu_adam.jsonl", about, options.dry_run)
        print("".join(line + "\n" for line in without), end="", file=sys.stderr)
    return 1 if failed or (absent and not options.set) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept", file=sys.stderr)
        sys.exit(130)
