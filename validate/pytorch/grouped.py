#!/usr/bin/env python3
"""Products of experts, timed: torch._grouped_mm in bf16 beside the same products batched and beside one expert's alone.

    python3 validate/pytorch/grouped.py -o DIR

Of each shape the product itself and its two gradients, with equal shares of tokens and with shares as a router has them
that knows no balance (multinomial). Writes DIR/grouped.csv: model, experts, tokens of each, k, n, shares, pass, and
microseconds, medians of three batches of ten launches; of a batched product or of one expert only with equal shares.
Exit status: 0 measured, 2 bad usage or no GPU.
"""

import argparse
import pathlib
import statistics
import sys

from train_steps import torch_on_gpu, write_table

COLUMNS = ["model", "experts", "tokens_of_each", "k", "n", "shares", "pass", "grouped_us", "batched_us", "one_us"]
SHAPES = [("qwen3-30b", 128, 2048, 768), ("qwen3-30b", 128, 768, 2048), ("mixtral-8x7b", 8, 4096, 14336),
          ("mixtral-8x7b", 8, 14336, 4096), ("deepseek-v3/32", 8, 7168, 2048), ("deepseek-v3/32", 8, 2048, 7168),
          ("gpt-oss-120b/8", 16, 2880, 5760), ("deepseek-v2-lite", 64, 2048, 1408)]
TOKENS = (32, 128, 512, 2048)
MOST_BYTES = 16e9


def microseconds(launch, torch):
    for _ in range(3):
        launch()
    batches = []
    for _ in range(3):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        first.record()
        for _ in range(10):
            launch()
        last.record()
        last.synchronize()
        batches.append(first.elapsed_time(last) * 100)
    return statistics.median(batches)


def launches(x, weights, dy, ends, torch):
    """Of the product and its gradients: functions by name."""
    grouped = torch._grouped_mm
    return {"forward": lambda: grouped(x, weights, offs=ends),
            "inputs": lambda: grouped(dy, weights.transpose(1, 2), offs=ends),
            "weights": lambda: grouped(x.t(), dy, offs=ends)}


def dense(which, x, weights, dy):
    """The same with as many tokens for each, batched."""
    experts = len(weights)
    x, dy = (t.view(experts, -1, t.shape[-1]) for t in (x, dy))
    return {"forward": lambda: x @ weights, "inputs": lambda: dy @ weights.transpose(1, 2),
            "weights": lambda: x.transpose(1, 2) @ dy}[which]


def rows_of(model, experts, k, n, each, torch):
    tokens = experts * each
    half = dict(device="cuda", dtype=torch.bfloat16)
    x, weights, dy = torch.randn(tokens, k, **half), torch.randn(experts, k, n, **half), torch.randn(tokens, n, **half)
    equal = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * each
    chosen = torch.randint(0, experts, (tokens,), device="cuda")
    drawn = torch.bincount(chosen, minlength=experts).cumsum(0).to(torch.int32)
    for shares, ends in (("equal", equal), ("drawn", drawn)):
        for which, launch in launches(x, weights, dy, ends, torch).items():
            row = dict(model=model, experts=experts, tokens_of_each=each, k=k, n=n, shares=shares, grouped_us="")
            row["pass"] = which
            try:
                row["grouped_us"] = f"{microseconds(launch, torch):.1f}"
            except RuntimeError as error:
                print(f"{row}: {str(error).splitlines()[0]}", file=sys.stderr)
            if shares == "equal":
                row["batched_us"] = f"{microseconds(dense(which, x, weights, dy), torch):.1f}"
                one = dense(which, x[:each], weights[:1], dy[:each])
                row["one_us"] = f"{microseconds(one, torch):.1f}"
            yield row


def check(torch):
    """Ends the program where grouped products are not the products of their groups."""
    x, weights = torch.randn(100, 64, device="cuda"), torch.randn(3, 64, 96, device="cuda")
    x, weights = x.bfloat16(), weights.bfloat16()
    ends = torch.tensor([37, 37, 100], device="cuda", dtype=torch.int32)
    wanted = torch.cat([x[:37].float() @ weights[0].float(), x[37:].float() @ weights[2].float()])
    error = ((torch._grouped_mm(x, weights, offs=ends).float() - wanted).norm() / wanted.norm()).item()
    gradient = torch._grouped_mm(x.t(), x, offs=ends)[2].float()
    wanted = x[37:].float().t() @ x[37:].float()
    error = max(error, ((gradient - wanted).norm() / wanted.norm()).item())
    if not error < 0.01:
        sys.exit(f"grouped.py: torch._grouped_mm is off by {error:.3g} of its result")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder for the results")
    options = parser.parse_args()
    torch = torch_on_gpu(parser)
    check(torch)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for model, experts, k, n in SHAPES:
        for each in TOKENS:
            if experts * (each * (k + n) + k * n) * 2 < MOST_BYTES:
                rows += rows_of(model, experts, k, n, each, torch)
    write_table(options.output / "grouped.csv", COLUMNS, rows)
    print(f"{len(rows)} rows in {options.output / 'grouped.csv'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
