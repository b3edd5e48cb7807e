#!/usr/bin/env python3
"""How long a product takes over the time since the GPU was idle: how its board gives clocks up, and gets them back.

    python3 validate/pytorch/clocks.py -o DIR

Products of 8192 x 8192 x 8192, one after the other for two seconds after 0.7 s of idleness, timed by events: bf16 of normal
numbers and of zeros, fp8, tf32; then bf16 in spells with idleness between, as steps have that wait for a network. Writes
DIR/clocks.csv: what ran, milliseconds since it began, milliseconds of one. Exit status: 0 measured, 2 bad usage or no GPU.
"""

import argparse
import pathlib
import sys
import time

from train_steps import torch_on_gpu, write_table

SIZE, SECONDS, IDLE_S = 8192, 2.0, 0.7
SPELLS_MS = ((50, 50), (200, 50), (200, 200))  # of work and of idleness


def products(torch):
    """What is run: a function by its name."""
    normal = [torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(2)]
    zeros = [torch.zeros_like(matrix) for matrix in normal]
    wide = [matrix.float() for matrix in normal]
    eight = [matrix.to(torch.float8_e4m3fn) for matrix in normal]
    one = torch.ones((), device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    return {
        "bf16, normal numbers": lambda: normal[0] @ normal[1],
        "bf16, zeros": lambda: zeros[0] @ zeros[1],
        "fp8, normal numbers": lambda: torch._scaled_mm(eight[0], eight[1].t(), one, one, out_dtype=torch.bfloat16),
        "tf32, normal numbers": lambda: wide[0] @ wide[1],
    }


def run_for(launch, seconds, torch):
    """Events around each launch, as [begin, end], and when they were enqueued is of no matter."""
    marks = [torch.cuda.Event(enable_timing=True)]
    marks[0].record()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(8):
            launch()
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        marks[-4].synchronize()  # the host stays close
    torch.cuda.synchronize()
    return marks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder for the results")
    options = parser.parse_args()
    torch = torch_on_gpu(parser)
    rows = []

    def note(what, first, marks):
        for before, after in zip(marks, marks[1:]):
            rows.append({"product_8192": what, "ms_since_idle": f"{first.elapsed_time(after):.1f}",
                         "ms_of_one": f"{before.elapsed_time(after):.4f}"})

    functions = products(torch)
    for what, launch in functions.items():
        for _ in range(3):
            launch()
        torch.cuda.synchronize()
        time.sleep(IDLE_S)
        marks = run_for(launch, SECONDS, torch)
        note(what, marks[0], marks)
    launch = functions["bf16, normal numbers"]
    for work, idle in SPELLS_MS:
        time.sleep(IDLE_S)
        first, end = None, time.monotonic() + SECONDS
        while time.monotonic() < end:
            marks = run_for(launch, work * 1e-3, torch)
            first = first or marks[0]
            note(f"bf16, {work} ms, idle {idle} ms", first, marks)
            time.sleep(idle * 1e-3)
    options.output.mkdir(parents=True, exist_ok=True)
    write_table(options.output / "clocks.csv", ["product_8192", "ms_since_idle", "ms_of_one"], rows)
    print(f"{len(rows)} rows in {options.output / 'clocks.csv'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
