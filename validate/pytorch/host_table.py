"""Measurements between hosts as a table of cases for `foretrain validate`."""

import csv
import math
import statistics

from host_cases import FAMILIES, MODELS, PARALLEL, SERVED, USUAL, VISION, way_of

COLUMNS = ["case", "group", "anchor", "base", "cluster.nodes", "cluster.network.nic_bandwidth",
           "cluster.network.fabric", "cluster.node.gpu.processor.share", "cluster.faults", "workload.train.model",
           "workload.train.data", "workload.train.freeze", "workload.train.lora", "workload.train.micro_batch",
           "workload.train.global_batch", "workload.train.recompute", "plan.framework", "plan.data", "plan.tensor",
           "plan.sequence_parallel", "plan.context", "plan.expert", "plan.pipeline", "plan.interleave", "plan.schedule",
           "plan.stage_layers", "plan.zero", "plan.reshard_after_forward", "plan.sync.algorithm", "plan.sync.servers",
           "plan.sync.split", "plan.sync.placement", "plan.sync.consistency", "plan.sync.barrier",
           "plan.sync.slow_workers", "plan.sync.compression", "plan.sync.overlap", "background", "cluster.failures",
           "workload.train.samples", "workload.train.checkpoint", "workload.train.recovery", "measured.step_time",
           "measured.time_to_train", "measured.memory_per_gpu", "replay.model", "replay.deaths", "replay.done_again",
           "replay.way", "replay.core", "replay.exposed", "replay.staleness", "replay.faults", "replay.spread",
           "replay.cores_busy", "replay.others", "source"]


def mapping(**keys):
    """As scenarios write it."""
    return "{ " + ", ".join(f"{key}: {value}" for key, value in keys.items()) + " }"


def model_cell(case):
    if case["kind"] == "vision":
        shape = VISION[case["model"]]
        return mapping(family="vision_language", vision=mapping(family="vit", **shape["vision"]),
                       projector=mapping(kind="mlp", **shape["projector"]),
                       language=mapping(preset="llama2-7b", **shape["language"], kv_heads=shape["language"]["heads"]))
    if case["model"] in MODELS:
        return MODELS[case["model"]][0]
    shape = FAMILIES[case["model"]]
    keys = {name: shape[name] for name in ("layers", "hidden", "heads", "vocabulary", "sequence")}
    if shape["family"] == "gpt":
        return mapping(preset="gpt2", **keys, tied_embeddings="false")
    keys.update(kv_heads=shape["heads"], ffn_hidden=shape["ffn"])
    if not shape["experts"]:
        return mapping(preset="llama2-7b", **keys)
    keys.update(experts=shape["experts"], experts_per_token=shape["per_token"])
    if case["skew"] != 1:
        keys.update(expert_imbalance=case["skew"])
    return mapping(preset="mixtral-8x7b", **keys)


def probed_share(case, reference):
    """Of a core: what is stated, times what single operators beside the run got done in a second of the processor's
    time, compared with when the figures of the processor were measured."""
    if not reference or "probes" not in case:
        return case["share"]
    equal = case["probes"][:-1] if case.get("slow_core") else case["probes"]
    # The time of a loop depends more on the caches than on the core.
    ratios = [math.log(reference[name] / probe[name]) for probe in equal for name in ("product", "convolution")]
    return round(case["share"] * math.exp(statistics.mean(ratios)), 3)


def speed_of(runs, reference):
    """Of a core while these ran, over when single operators were measured: the probes beside a run scatter as much as
    steps do, and tell nothing of its own step."""
    ratios = [probed_share(run, reference) / run["share"] for run in runs
              if "probes" in run and not run.get("slow_core")]
    return statistics.median(ratios) if ratios else 1.0


def scenario_cells(run, share):
    """The case's cells; `share` of a core that its processes had."""
    case = dict(USUAL, **run)
    kind, workers, slow_core = case["kind"], case["workers"], case["slow_core"]
    served, divided = kind in SERVED, kind in PARALLEL + ("lifetime",)
    cells = {"case": "hosts-" + case["name"], "group": f"hosts-{kind}",
             "base": "servers-hosts" if served else "parallel-hosts" if divided or kind == "vision" else
                     "data-parallel-hosts",
             "cluster.nodes": workers + (0 if case["beside"] else case["servers"] or int(served)),
             "cluster.network.nic_bandwidth": f"{case['rate']} Mbit/s", "workload.train.model": model_cell(case),
             "workload.train.micro_batch": case["batch"], "plan.data": case["data"] if divided else workers,
             "replay.model": case["model"], "replay.way": way_of(case), "replay.core": case["share"]}
    if share != 1:
        cells["cluster.node.gpu.processor.share"] = share
    faults = [f"{{ node: 0, link: \"{link}\", bandwidth: {case['slow']} Mbit/s }}"
              for link in ("nic0>fabric", "fabric>nic0") if case["slow"]]
    if slow_core and not served:
        faults.append(f"{{ node: {workers - 1}, gpu: 0, speed: {1 / slow_core:.0%} }}")
    if faults:
        cells["cluster.faults"] = f"[{', '.join(faults)}]"
    if case["checkpoint"]:
        cells["workload.train.recompute"] = "full"
    if case["background"]:
        cells["background"] = "[{{ from: node{}, to: node{} }}]".format(*case["background"])
    cells.update(divided_cells(case) if divided else vision_cells(case) if kind == "vision" else synchronised_cells(case))
    return cells


def synchronised_cells(case):
    """Data parallel training and servers."""
    kind, slow_core = case["kind"], case["slow_core"]
    cells = {"plan.sync.algorithm": "parameter_server" if kind in SERVED else "ring"}
    if slow_core and kind in SERVED:
        cells["plan.sync.slow_workers"] = f"{{ count: 1, factor: {slow_core} }}"
    if kind in ("async", "bounded"):
        cells["plan.sync.consistency"] = "asynchronous" if kind == "async" else f"bounded({case['bound']})"
        cells["plan.sync.barrier"] = "false"
    if case["servers"] > 1:
        cells.update({"plan.sync.servers": case["servers"], "plan.sync.split": "64 KiB"})
    if case["beside"]:
        cells["plan.sync.placement"] = "cpu"
    if case["accumulate"] > 1:
        cells["workload.train.global_batch"] = case["batch"] * case["workers"] * case["accumulate"]
    if case["hook"]:
        cells["plan.sync.compression"] = case["hook"]
    return cells


def vision_cells(case):
    cells = {"workload.train.data": mapping(images=case["images"], text=case["text"]), "plan.tensor": 1,
             "workload.train.global_batch": case["batch"] * case["accumulate"] * case["workers"]}
    if case["freeze"]:
        cells["workload.train.freeze"] = f"[{', '.join(case['freeze'])}]"
    if case["lora"]:
        cells["workload.train.lora"] = mapping(rank=case["lora"], targets="[attention, ffn]")
    return cells


def divided_cells(case):
    """Of a model that is divided over hosts."""
    cells = {f"plan.{name}": case[name] for name in ("tensor", "context", "expert", "pipeline", "interleave")}
    cells["workload.train.global_batch"] = case["batch"] * case["micro_batches"] * case["data"]
    if case["sequence"]:
        cells["plan.sequence_parallel"] = "true"
    if case["pipeline"] > 1:
        cells.update({"plan.schedule": case["schedule"], "plan.sync.overlap": "false"})
    if case["stage_layers"]:
        cells["plan.stage_layers"] = str(case["stage_layers"])
    if case["sharding"] == "optimizer":
        cells["plan.zero"] = 1
    elif case["sharding"]:
        zero = f"{{ stage: 3, shard: {case['shard']} }}" if case["shard"] else 3
        cells.update({"plan.framework": "fsdp", "plan.sync.overlap": "false", "plan.zero": zero})
        if case["sharding"] == "gradients":
            cells["plan.reshard_after_forward"] = "false"
    if case["uplink"]:
        half = case["workers"] // 2
        cells["cluster.network.fabric"] = mapping(kind="fat_tree", nodes_per_leaf=half,
                                                  oversubscription=f"{case['rate'] * half / case['uplink']:g}")
    return cells


def simplest_first(run):
    """The order of a table: its first step of a model, one process on a whole core and the usual batch, is what the
    model's other steps are anchored by (`foretrain validate --anchor 1`)."""
    kinds = ("alone", "ring") + SERVED + PARALLEL + ("vision",)
    unusual = run["model"] in MODELS and run["batch"] != MODELS[run["model"]][1]
    return (kinds.index(run["kind"]), -run["share"], run["model"], unusual, run.get("accumulate", 1), run["workers"],
            run["rate"], run["name"])


def cells_of(run, reference, source, speed):
    parallel = run["kind"] in PARALLEL
    share = probed_share(run, reference) if run["kind"] in ("alone", "ring") + SERVED else round(run["share"] * speed, 3)
    cells = dict(scenario_cells(run, share if parallel else min(share, 1.0)), anchor=run["model"], source=source)
    cells.update({"measured.step_time": f"{run['median_s'] * 1e3:.4f} ms", "replay.spread": f"{run['spread']:.3f}",
                  "replay.cores_busy": run["cores_busy"], "replay.others": run["others"]})
    # Seconds in which the step waits for others: measured, or what the thread that computes leaves of the step.
    exposed = run.get("exposed_s")
    if parallel and run["workers"] > 1:
        exposed = max(0.0, run["median_s"] - run["thread_s"] / run["share"])
    if exposed is not None:
        cells["replay.exposed"] = f"{exposed * 1e3:.4f} ms"
    if "staleness_mean" in run:
        cells["replay.staleness"] = f"{run['staleness_mean']:.3f}"
    if "faults" in run:
        cells["replay.faults"] = run["faults"]
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
