#!/usr/bin/env python3
"""Training steps in plain PyTorch, timed: the ground truth that foretrain's predictions are held against.

    python3 validate/pytorch/train_steps.py -o DIR [--quick] [--only resnet-50,gpt2] [--node h200-x1] [--trace]

Needs PyTorch with CUDA and nothing else: the models are written out below, shape for shape those of scenarios/models.
Every case is measured in a process of its own (memory is then that of the case alone, and a failure costs one case) and
written to DIR/pytorch.jsonl at once, so that an interrupted run goes on where it was. At the end DIR/cases_pytorch.csv
holds all of them as a table of cases: foretrain validate --cases DIR/cases_pytorch.csv. With --trace each case also
leaves a Kineto trace (trace-CASE.json.gz), of steps that are not among those timed.

Exit status: 0 all cases measured, 1 some failed (listed), 2 no PyTorch or no GPU, or bad usage, 130 interrupted.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

CASE_TIMEOUT_S, QUICK_CASE_TIMEOUT_S = 600, 80  # torch.compile of the largest model takes minutes
QUICK_BUDGET_S = 105  # with --quick no case is begun after so long
COLUMNS = ["case", "group", "cluster.node", "cluster.nodes", "cluster.gpus_per_node", "workload.train.model",
           "workload.train.model.sequence", "workload.train.global_batch", "workload.train.micro_batch",
           "workload.train.precision", "workload.train.optimizer", "workload.train.master_weights",
           "workload.train.kernels", "workload.train.attention", "plan.execution", "plan.sync.gradient_precision",
           "measured.step_time", "measured.memory_per_gpu", "source"]


def designed_cases(quick, half="bf16"):
    """Each case as a dict: model, batch, sequence (None for images), precision, execution. `half` is the short format
    that the GPU trains in: before Ampere there is no bf16."""
    cases = []

    def add(model, batches, precisions, modes, sequences=(None,)):
        for batch in batches:
            for sequence in sequences:
                for precision in precisions:
                    for mode in modes:
                        cases.append(dict(model=model, batch=batch, sequence=sequence, precision=precision,
                                          execution=mode))

    both = ("eager", "compiled")
    if quick:
        add("lenet", (256,), ("fp32",), ("eager",))
        add("resnet-18-d2l", (256,), ("fp32",), ("eager",))
        add("resnet-50", (64,), (half,), ("eager",))
        add("bert-base", (16,), (half,), ("eager",), (128,))
        add("gpt2", (8,), (half,), both, (1024,))
        return cases
    add("lenet", (16, 256, 2048), ("fp32",), both)
    add("resnet-18-d2l", (64, 256, 1024), ("fp32", "tf32"), ("eager",))
    add("resnet-18-d2l", (256,), (half,), both)
    add("resnet-50", (32, 128, 256), ("tf32", half), ("eager",))
    add("resnet-50", (128,), ("fp32",), ("eager",))
    add("resnet-50", (128,), (half,), ("compiled",))
    add("bert-base", (8, 32), ("fp32", half), ("eager",), (128, 512))
    add("bert-base", (32,), (half,), ("compiled",), (512,))
    add("gpt2", (4, 16), (half,), both, (512, 1024))
    add("gpt2-medium", (4, 8), (half,), both, (1024,))
    add("gpt2-large", (2, 4), (half,), both, (1024,))
    add("gpt3-1.3b", (1, 4), (half,), both, (2048,))
    return cases


def name_of(case):
    length = f"-s{case['sequence']}" if case["sequence"] else ""
    return f"{case['model']}-b{case['batch']}{length}-{case['precision']}-{case['execution']}"


HALF = {"bf16": "bfloat16", "fp16": "float16"}  # by torch's names
TRANSFORMERS = {  # layers, hidden, heads, vocabulary, longest sequence; scenarios/models says where from
    "bert-base": (12, 768, 12, 30522, 512),
    "gpt2": (12, 768, 12, 50257, 1024),
    "gpt2-medium": (24, 1024, 16, 50257, 1024),
    "gpt2-large": (36, 1280, 20, 50257, 1024),
    "gpt3-1.3b": (24, 2048, 16, 51200, 2048),
}


# --- One case, in a process of its own -----------------------------------------------------------------------------


def prepare_step(case, torch):
    """A function that trains one step and returns its loss."""
    import models
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda")
    if case["model"] in TRANSFORMERS:
        vocabulary = TRANSFORMERS[case["model"]][3]
        model = models.build_transformer(TRANSFORMERS[case["model"]], bert=case["model"].startswith("bert")).to(device)
        shape = (case["batch"], case["sequence"])
        tokens, targets = (torch.randint(0, vocabulary, shape, device=device) for _ in range(2))
        call = torch.compile(model) if case["execution"] == "compiled" else model
        loss_of = lambda: call(tokens, targets)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    else:
        model = models.build_network(case["model"]).to(device)
        shape = (3, 224, 224) if case["model"] == "resnet-50" else (1, 28, 28)
        images = torch.randn(case["batch"], *shape, device=device)
        labels = torch.randint(0, 1000 if case["model"] == "resnet-50" else 10, (case["batch"],), device=device)
        if case["precision"] in HALF:  # tensor cores want channels last
            model, images = (t.to(memory_format=torch.channels_last) for t in (model, images))
        call = torch.compile(model) if case["execution"] == "compiled" else model
        loss_of = lambda: torch.nn.functional.cross_entropy(call(images).float(), labels)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    model.train()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", getattr(torch, HALF.get(case["precision"], "bfloat16")),
                            enabled=case["precision"] in HALF):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


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


def run_case(case, trace_path, seconds):
    import torch
    step = prepare_step(case, torch)
    values = time_steps(step, torch, seconds)
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    result = dict(values=values, peak_allocated=torch.cuda.max_memory_allocated(),
                  peak_reserved=torch.cuda.max_memory_reserved(), device_used=total - free)
    if trace_path:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
        profiler.export_chrome_trace(trace_path)
        result["trace"] = os.path.basename(trace_path)
    return result


# --- All cases -----------------------------------------------------------------------------------------------------


def known_results(path):
    """Results of earlier runs by name; a last line that was cut off is dropped."""
    known = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            known[record["name"]] = record
    return known


def append_line(path, line):
    """Adds a line; after a run that was killed while it wrote, on a line of its own."""
    with open(path, "a+b") as out:
        size = out.seek(0, os.SEEK_END)
        if size:
            out.seek(size - 1)
            if out.read(1) != b"\n":
                line = "\n" + line
        out.write(line.encode() + b"\n")


def row_of(record, node):
    case = record["case"]
    transformer = case["model"] in TRANSFORMERS
    half = case["precision"] in HALF
    flash = case["precision"] == "bf16"  # PyTorch's flash attention begins with Ampere, as bf16 does
    return {
        "case": "pytorch-" + record["name"], "group": "pytorch-" + case["model"], "cluster.node": node,
        "cluster.nodes": 1, "cluster.gpus_per_node": 1, "workload.train.model": case["model"],
        "workload.train.model.sequence": case["sequence"] or "", "workload.train.global_batch": case["batch"],
        "workload.train.micro_batch": case["batch"], "workload.train.precision": case["precision"],
        "workload.train.optimizer": "adamw" if transformer else "momentum",
        "workload.train.master_weights": "true" if half else "",
        "workload.train.kernels": "plain" if transformer else "",
        "workload.train.attention": ("flash" if flash else "memory_efficient") if transformer else "",
        "plan.execution": case["execution"], "plan.sync.gradient_precision": "fp32" if half else "",
        "measured.step_time": f"{statistics.median(record['values']):.6g} s",
        "measured.memory_per_gpu": f"{record['device_used'] / 1e6:.1f} MB",
        "source": "PyTorch {pytorch}, CUDA {cuda}, {gpu}, {date}".format(**record),
    }


def write_table(path, records, node):
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row_of(record, node) for record in records)
    os.replace(partial, path)


def measure(case, folder, trace, seconds, timeout):
    """The record of one case, measured in a child process."""
    name = name_of(case)
    command = [sys.executable, os.path.abspath(__file__), "--case", json.dumps(case), "--seconds", str(seconds)]
    if trace:
        command += ["--trace-file", str(folder / f"trace-{name}.json.gz")]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return dict(name=name, case=case, status="failed", note=f"not done after {timeout} s")
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or [f"ended with status {child.returncode}"]
        return dict(name=name, case=case, status="failed", note=lines[-1][:500])
    return dict(name=name, case=case, status="measured", **json.loads(child.stdout.splitlines()[-1]))


def environment():
    """What was measured with; ends the program where nothing can be."""
    try:
        import torch
    except ImportError:
        sys.exit("train_steps.py: no PyTorch for this Python; install it, or leave this part out")
    if not torch.cuda.is_available():
        sys.exit("train_steps.py: PyTorch sees no GPU; see nvidia-smi and torch.version.cuda")
    cudnn = torch.backends.cudnn.version()
    return dict(pytorch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn, gpu=torch.cuda.get_device_name(),
                date=time.strftime("%Y-%m-%d"),
                half="bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16")


def finish(options, known, failed):
    measured = [record for record in known.values() if record["status"] == "measured"]
    if not measured:
        print("no case was measured", file=sys.stderr)
        return 1
    table = options.output / "cases_pytorch.csv"
    write_table(table, measured, options.node or "this-machine.yaml")
    print(f"{len(measured)} cases in {table}; {len(failed)} not measured", file=sys.stderr)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="six cases, three minutes at most")
    parser.add_argument("--only", default="", help="models, comma-separated")
    parser.add_argument("--node", default="", help="cluster.node of the table of cases (a catalogue name or a file)")
    parser.add_argument("--trace", action="store_true", help="also leave a Kineto trace of each case")
    parser.add_argument("--table", action="store_true",
                        help="only write the table of what the folder holds; needs no PyTorch")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    for hidden in ("--case", "--trace-file"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(json.loads(options.case), options.trace_file, options.seconds)))
        return 0
    wanted = [word for word in options.only.split(",") if word]
    unknown = sorted(set(wanted) - {case["model"] for case in designed_cases(False)})
    if unknown:
        parser.error(f"--only: there is no model {unknown[0]}")
    if not options.list and not options.output:
        parser.error("-o DIR is missing: where the results go")
    about = {} if options.list or options.table else environment_in_child()
    cases = designed_cases(options.quick, about.pop("half", "bf16"))
    cases = [case for case in cases if not wanted or case["model"] in wanted]
    if options.list:
        print("\n".join(name_of(case) for case in cases))
        return 0
    journal = options.output / "pytorch.jsonl"
    known = known_results(journal)
    if options.table:
        return finish(options, known, [])
    options.output.mkdir(parents=True, exist_ok=True)
    failed = []
    timeout = QUICK_CASE_TIMEOUT_S if options.quick else CASE_TIMEOUT_S
    end = time.monotonic() + QUICK_BUDGET_S if options.quick else float("inf")
    for index, case in enumerate(cases):
        name = name_of(case)
        if known.get(name, {}).get("status") == "measured":
            continue
        if time.monotonic() > end:
            failed.append(name)
            print(f"  {name}: its time was up: run again for what is left", file=sys.stderr)
            continue
        print(f"[{index + 1}/{len(cases)}] {name}", file=sys.stderr, flush=True)
        known[name] = measure(case, options.output, options.trace, 1.0 if options.quick else 3.0, timeout)
        known[name].update(about)
        append_line(journal, json.dumps(known[name]))
        if known[name]["status"] == "failed":
            failed.append(name)
            print(f"  failed: {known[name]['note']}", file=sys.stderr)
    return finish(options, known, failed)


def environment_in_child():
    """environment(), without a CUDA context in this process, which would take memory from the cases."""
    code = "import json, runpy; print(json.dumps(runpy.run_path(%r)['environment']()))" % os.path.abspath(__file__)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if child.returncode != 0:
        print(child.stderr.strip().splitlines()[-1], file=sys.stderr)
        sys.exit(2)
    return json.loads(child.stdout.splitlines()[-1])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept", file=sys.stderr)
        sys.exit(130)
