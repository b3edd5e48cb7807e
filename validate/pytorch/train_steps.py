#!/usr/bin/env python3
"""Training steps in plain PyTorch, timed: the ground truth for comparison with predictions.

    python3 validate/pytorch/train_steps.py -o DIR [--quick] [--only resnet-50,gpt2] [--node h200-x1] [--trace]
    python3 validate/pytorch/train_steps.py -o DIR --set finetune|networks [--dry-run]

Needs PyTorch with CUDA and nothing else: the models are written out in models.py, shape for shape those of
scenarios/models. Every case is measured in a process of its own (one_step.py: memory is then that of the case alone, and
a failure costs one case) and written to DIR/steps.jsonl at once, so that an interrupted run goes on where it was. Its
lines are records as foretrain-gpu's suites have them, to which `foretrain calibrate --from DIR` fits the host's part of
steps; about a quarter of them is held out. At the end DIR/cases_pytorch.csv holds all of them as a table of cases:
foretrain validate --cases DIR/cases_pytorch.csv. DIR/kernels-CASE.json lists a step's kernels; with --trace each case
also leaves a Kineto trace (trace-CASE.json.gz), both of steps that are not among those timed.

--set finetune is what fine-tuners run (adapters, 4-bit weights, checkpointing, losses, offload), --set networks memory
layouts and number formats of convolution networks. They go to DIR/SET.jsonl, which no fit reads, DIR/cases_SET.csv and
DIR/memory-CASE.json, the allocations at a step's peak. --dry-run runs each case as a tiny model on the CPU, for two
steps, and says what only a GPU can run.

Exit status: 0 all cases measured, 1 some failed (listed), 2 no PyTorch or no GPU, or bad usage, 130 interrupted.
"""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from step_cases import COLUMNS, GROUPED, SETS, cells_of, designed_cases, held_out, name_of

CASE_TIMEOUT_S, QUICK_CASE_TIMEOUT_S = 300, 80  # torch.compile of the largest model takes minutes
QUICK_BUDGET_S = 105  # with --quick no case is begun after so long
LIBRARIES = {"bitsandbytes": "bitsandbytes", "deepspeed": "deepspeed", "liger": "liger_kernel"}  # by their modules' names


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


def record_of(case, result):
    """Measurement of one_step.py as a record of a suite (validate/measure/record.hpp)."""
    parameters = {key: format(value, ".9g") for key, value in result.pop("figures").items() if value is not None}
    scenario = cells_of(case)
    attention = result.pop("attention", None)
    if attention:  # PyTorch's choice
        scenario["workload.train.attention"] = "memory_efficient" if attention == "memory_efficient" else "flash"
        scenario["workload.train.native_attention"] = "true" if attention == "cudnn" else "false"
    parameters["held_out"] = "true" if held_out(name_of(case)) else "false"
    return dict(suite="steps", name=name_of(case), status="measured", case=case, scenario=scenario,
                parameters=parameters, device=0, unit="s", **result)


def row_of(record, node, which):
    case = record["case"]
    group = {"steps": case["model"], "networks": f"{case['model']}-{case['precision']}-{case.get('memory_format')}",
             "finetune": "-".join(key for key in GROUPED if key in case) or "plain"}[which]
    return {
        "case": "pytorch-" + record["name"], "group": "pytorch-" + group, "cluster.node": node,
        "cluster.nodes": 1, **record["scenario"],
        "measured.step_time": f"{statistics.median(record['values']):.6g} s",
        "measured.memory_per_gpu": f"{float(record['parameters']['device_used_bytes']) / 1e6:.1f} MB",
        "source": "PyTorch {pytorch}, CUDA {cuda}, {gpu}, {date}".format(**record),
    }


def write_table(path, columns, rows):
    """A table of cases, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, path)


def failed_record(case):
    return dict(suite="steps", name=name_of(case), status="failed", case=case, scenario=cells_of(case), parameters={})


def dry_record(case):
    """The case's record of a dry run in this process: loading PyTorch takes longer than the steps."""
    import one_step
    try:
        return record_of(case, one_step.run_case(case, argparse.Namespace(dry_run=True, wait=False)))
    except Exception as error:  # whatever PyTorch says
        return dict(failed_record(case), note=f"{type(error).__name__}: {error}"[:500])


class Child:
    """A process that measures one case: it loads PyTorch at once, and waits to be told to go on, so that loading takes
    no time of the GPU's."""

    def __init__(self, case, options):
        folder = options.output
        self.case, self.name = case, name_of(case)
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "one_step.py")
        command = [sys.executable, program, json.dumps(case), "--seconds", str(options.seconds), "--kernels",
                   str(folder / f"kernels-{self.name}.json"), "--wait"]
        if options.trace:
            command += ["--trace", str(folder / f"trace-{self.name}.json.gz")]
        if options.set != "steps":
            command += ["--memory", str(folder / f"memory-{self.name}.json")]
        if options.dry_run:
            command += ["--dry-run"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def measure(self, timeout):
        """The case's record."""
        failed = failed_record(self.case)
        try:
            output, errors = self.process.communicate("go\n", timeout=timeout)
        except subprocess.TimeoutExpired:
            self.end()
            return dict(failed, note=f"not done after {timeout} s")
        if self.process.returncode != 0:
            lines = errors.strip().splitlines() or [f"ended with status {self.process.returncode}"]
            named = [line for line in lines if "Error" in line]
            return dict(failed, note=(named or lines)[-1][:500])
        return record_of(self.case, json.loads(output.splitlines()[-1]))

    def end(self):
        self.process.kill()
        self.process.communicate()


def torch_on_gpu(fail):
    """PyTorch with a GPU; says by `fail`, which ends the program, where there is none."""
    try:
        import torch
    except ImportError:
        fail("no PyTorch for this Python; install it, or leave this part out")
    if not torch.cuda.is_available():
        fail("PyTorch sees no GPU; see nvidia-smi and torch.version.cuda")
    return torch


def environment(dry_run=False):
    """Equipment of the measurement; ends the program if nothing can be measured."""
    if dry_run:
        import torch
        return dict(pytorch=torch.__version__, cuda=None, cudnn=None, gpu="no GPU (dry run)", date=time.strftime("%Y-%m-%d"),
                    gpu_can={})
    torch = torch_on_gpu(lambda why: sys.exit("train_steps.py: " + why))
    cudnn = torch.backends.cudnn.version()
    return dict(pytorch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn, gpu=torch.cuda.get_device_name(),
                date=time.strftime("%Y-%m-%d"),
                gpu_can=dict(half="bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16",
                             memory_gb=torch.cuda.get_device_properties(0).total_memory / 1e9,
                             fp8=torch.cuda.get_device_capability() >= (8, 9)))


def finish(options, known, failed):
    measured = [record for record in known.values() if record["status"] == "measured"]
    if not measured:
        print("no case was measured", file=sys.stderr)
        return 1
    table = options.output / f"cases_{'pytorch' if options.set == 'steps' else options.set}.csv"
    node = options.node or "this-machine.yaml"
    write_table(table, COLUMNS, (row_of(record, node, options.set) for record in measured))
    print(f"{len(measured)} cases in {table}; {len(failed)} not measured", file=sys.stderr)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="six cases, three minutes at most")
    parser.add_argument("--only", default="", help="models, comma-separated")
    parser.add_argument("--node", default="", help="cluster.node of the table of cases (a catalogue name or a file)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for which a case's steps are timed, ten at least (2)")
    parser.add_argument("--trace", action="store_true", help="also leave a Kineto trace of each case")
    parser.add_argument("--table", action="store_true",
                        help="only write the table of what the folder holds; needs no PyTorch")
    parser.add_argument("--set", choices=SETS, default="steps", help="which steps (steps)")
    parser.add_argument("--dry-run", action="store_true", help="tiny models on the CPU, to see that all cases run")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    options = parser.parse_args()
    designed = SETS[options.set]
    wanted = [word for word in options.only.split(",") if word]
    unknown = sorted(set(wanted) - {case["model"] for case in designed(**every_case(options))})
    if unknown:
        parser.error(f"--only: there is no model {unknown[0]}")
    if not options.list and not options.output:
        parser.error("-o DIR is missing: where the results go")
    about = {} if options.list or options.table else environment_in_child(options.dry_run)
    cases = designed(**every_case(options), **about.pop("gpu_can", {}))
    cases = [case for case in cases if not wanted or case["model"] in wanted]
    if options.list:
        print("\n".join(name_of(case) for case in cases))
        return 0
    journal = options.output / f"{options.set}.jsonl"
    known = known_results(journal)
    if options.table:
        return finish(options, known, [])
    options.output.mkdir(parents=True, exist_ok=True)
    timeout = QUICK_CASE_TIMEOUT_S if options.quick or options.set != "steps" else CASE_TIMEOUT_S
    left = [case for case in cases if known.get(name_of(case), {}).get("status") != "measured"]
    end = time.monotonic() + QUICK_BUDGET_S if options.quick else float("inf")
    failed = []
    next_child = None
    try:
        for index, case in enumerate(left):
            name = name_of(case)
            if time.monotonic() > end:
                failed.append(name)
                print(f"  {name}: its time was up: run again for what is left", file=sys.stderr)
                continue
            began = time.monotonic()
            if options.dry_run and index:
                known[name] = dry_record(case)
            else:
                child = next_child or Child(case, options)
                next_child = Child(left[index + 1], options) if index + 1 < len(left) and not options.dry_run else None
                began = time.monotonic()
                known[name] = child.measure(timeout)
            known[name].update(about)
            append_line(journal, json.dumps(known[name]))
            print(f"[{index + 1}/{len(left)}] {name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
            if known[name]["status"] == "failed":
                failed.append(name)
                print(f"  failed: {known[name]['note']}", file=sys.stderr)
    finally:
        if next_child:
            next_child.end()
    return finish(options, known, failed)


def every_case(options):
    """Arguments of the set's function of cases, besides the GPU's capabilities."""
    if options.set == "steps":
        return dict(quick=options.quick)
    return dict(at_hand=[] if options.dry_run else libraries_at_hand())


def libraries_at_hand():
    return [name for name, module in LIBRARIES.items() if importlib.util.find_spec(module)]


def environment_in_child(dry_run):
    """environment(), without a CUDA context in this process, which would take memory from the cases."""
    code = "import json, sys; sys.path.insert(0, %r); import train_steps; print(json.dumps(train_steps.environment(%r)))"
    code %= os.path.dirname(os.path.abspath(__file__)), dry_run
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
