"""What was measured between hosts as a table of cases for `foretrain validate`."""

import csv
import statistics

from host_cases import MODELS, SERVED, USUAL, scenario_cells, share_of
from host_parallel_cases import PARALLEL, parallel_cells
from host_vision_cases import vision_cells

COLUMNS = ["case", "group", "anchor", "base", "cluster.nodes", "cluster.network.nic_bandwidth",
           "cluster.network.fabric", "cluster.node.gpu.processor.share", "cluster.faults", "workload.train.model",
           "workload.train.data", "workload.train.freeze", "workload.train.lora", "workload.train.micro_batch",
           "workload.train.global_batch", "workload.train.recompute", "plan.trainer", "plan.data", "plan.tensor",
           "plan.sequence_parallel", "plan.context", "plan.expert", "plan.pipeline", "plan.interleave", "plan.schedule",
           "plan.stage_layers", "plan.zero", "plan.reshard_after_forward", "plan.sync.algorithm", "plan.sync.servers",
           "plan.sync.split", "plan.sync.placement", "plan.sync.consistency", "plan.sync.barrier",
           "plan.sync.slow_workers", "plan.sync.compression", "plan.sync.overlap", "background", "cluster.failures",
           "workload.train.samples", "workload.train.checkpoint", "workload.train.recovery", "measured.step_time",
           "measured.time_to_train", "measured.memory_per_gpu", "replay.model", "replay.deaths", "replay.done_again",
           "replay.way", "replay.core", "replay.exposed", "replay.staleness", "replay.faults", "replay.spread",
           "replay.cores_busy", "replay.others", "source"]


def simplest_first(run):
    """The order of a table: its first step of a model, one process on a whole core and the usual batch, is what the
    model's other steps are anchored by (`foretrain validate --anchor 1`)."""
    kinds = ("alone", "ring") + SERVED + PARALLEL + ("vision",)
    unusual = run["model"] in MODELS and run["batch"] != MODELS[run["model"]][1]
    return (kinds.index(run["kind"]), -run["share"], run["model"], unusual, run.get("accumulate", 1), run["workers"],
            run["rate"], run["name"])


def exposed_of(run):
    """Seconds in which the step waits for others: measured, or what the thread that computes leaves of the step."""
    if run["kind"] in PARALLEL and run["workers"] > 1:
        return max(0.0, run["median_s"] - run["thread_s"] / run["share"])
    return run.get("exposed_s")


def speed_of(runs, reference):
    """Of a core while these ran, over when single operators were measured: the probes beside a run scatter as much as
    steps do, and tell nothing of its own step."""
    ratios = [share_of(dict(USUAL, **run), reference) / run["share"] for run in runs
              if "probes" in run and not run.get("slow_core")]
    return statistics.median(ratios) if ratios else 1.0


def cells_of(run, reference, source, speed):
    cells = {"anchor": run["model"], "measured.step_time": f"{run['median_s'] * 1e3:.4f} ms",
             "replay.spread": f"{run['spread']:.3f}", "replay.cores_busy": run["cores_busy"],
             "replay.others": run["others"], "source": source}
    exposed = exposed_of(run)
    if exposed is not None:
        cells["replay.exposed"] = f"{exposed * 1e3:.4f} ms"
    if "staleness_mean" in run:
        cells["replay.staleness"] = f"{run['staleness_mean']:.3f}"
    if "faults" in run:
        cells["replay.faults"] = run["faults"]
    if run["kind"] == "vision":
        cells.update(vision_cells(run, speed))
    elif run["kind"] in PARALLEL:
        cells.update(parallel_cells(run, speed))
    else:
        cells.update(scenario_cells(run, reference))
    return cells


def write_table(path, measured):
    """Steps, and after them the peaks of memory, one for each way to train that holds something else."""
    reference, peaks, rows = measured["machine"].get("operators_ms"), {}, []
    runs = sorted((run for run in measured["runs"] if run["kind"] != "sum"), key=simplest_first)
    divided = [run for run in runs if run["kind"] in PARALLEL + ("vision",)]
    speeds = {date: speed_of([run for run in divided if run.get("date") == date], reference)
              for date in {run.get("date") for run in divided}}
    for run in runs:
        source = source_of("host_steps.py", measured["machine"], run.get("date"))
        cells = cells_of(run, reference, source, speeds.get(run.get("date")))
        rows.append(cells)
        held = (run["model"], run["batch"], run["kind"], run["workers"], cells["replay.way"])
        if "peak_bytes" in run and held not in peaks:
            peaks[held] = {key: value for key, value in cells.items()
                           if not key.startswith(("anchor", "measured", "replay"))}
            peaks[held].update({"case": cells["case"] + "-memory", "group": "hosts-memory",
                                "measured.memory_per_gpu": f"{run['peak_bytes']} B"})
    write_rows(path, rows + list(peaks.values()))


def source_of(program, where, date=None):
    """`date`: of the run, where it is of another day than the last one."""
    return (f"validate/pytorch/{program}, PyTorch {where['torch']}, {where['processor']} with {where['cores']} cores, "
            f"Linux {where['kernel']}, {date or where['date']}")


def write_rows(path, rows):
    with open(path, "w", newline="") as out:
        columns = [name for name in COLUMNS if any(name in row for row in rows)]
        table = csv.DictWriter(out, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
