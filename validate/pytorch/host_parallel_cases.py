"""What host_steps.py measures of a transformer that is divided over hosts, and its rows of a table."""

import math

from host_cases import NINTH, USUAL, faults_of, mapping

FAMILIES = {  # those of host_parallel.py
    "gpt-tall": dict(family="gpt", layers=8, hidden=384, heads=8, ffn=1536, vocabulary=4096, sequence=128, experts=0),
    "llama-tall": dict(family="llama", layers=8, hidden=384, heads=8, ffn=1024, vocabulary=4096, sequence=128,
                       experts=0),
    "moe": dict(family="llama", layers=4, hidden=256, heads=4, ffn=512, vocabulary=4096, sequence=128, experts=8,
                per_token=2),
}
ORDER = ("tensor", "context", "data", "pipeline")  # of ranks, the fastest first
PARALLEL = ("single", "replicas", "tensor", "pipeline", "sharded", "optimizer", "context", "experts", "mixed")
SHARES = {1: (1.0, 2), 2: (1.0, 2), 4: (0.5, 4), 8: (NINTH, 9)}  # by workers: of a core, and hosts


def parallel_cases():
    """Every way to divide a transformer over hosts, alone and mixed, and what disturbs it."""
    cases = []

    def add(kind, models, rates, batch=2, **rest):
        case = dict(USUAL, **rest)
        workers = math.prod(case[name] for name in ORDER)
        share, hosts = SHARES[workers]
        for model in models.split():
            for rate in rates:
                made = dict(case, kind=kind, model=model, batch=batch, workers=workers, rate=rate,
                            share=rest.get("share", share), hosts=rest.get("hosts", hosts))
                made["name"] = parallel_name_of(made)
                cases.append(made)

    both, slow, fast, all_rates = "gpt-tall llama-tall", (500, 1000), (1000, 2000), (500, 1000, 2000, 5000)
    for share, hosts in ((1.0, 2), (0.5, 4), (NINTH, 9)):
        add("single", both + " moe", (1000,), share=share, hosts=hosts)
    add("single", both + " moe", (1000,), batch=4)
    add("single", both, (1000,), batch=4, checkpoint=True)
    add("single", both, (1000,), micro_batches=3)
    for sequence in (False, True):
        add("tensor", both, all_rates, tensor=2, sequence=sequence)
        add("tensor", both, slow + (2000,), tensor=4, sequence=sequence)
        add("tensor", both, (500,), tensor=8, sequence=sequence)
    add("tensor", both, (1000,), tensor=2, batch=4, checkpoint=True)
    add("tensor", both, (1000,), tensor=2, micro_batches=2)
    add("tensor", both, (1000,), tensor=4, slow_core=2)
    for schedule, interleave in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("zero_bubble", 1), ("zero_bubble", 2)):
        way = dict(schedule=schedule, interleave=interleave, batch=1)
        add("pipeline", both, slow, pipeline=2, micro_batches=4, **way)
        add("pipeline", both, (200,), pipeline=4, micro_batches=8, **way)
        add("pipeline", "gpt-tall", (1000,), pipeline=4, micro_batches=4, **way)
    for schedule in ("gpipe", "1f1b"):
        way = dict(schedule=schedule, batch=1)
        add("pipeline", both, (500,), pipeline=8, micro_batches=8, **way)
        add("pipeline", "llama-tall", (1000,), pipeline=4, micro_batches=4, slow_core=2, **way)
        add("pipeline", "gpt-tall", (1000,), pipeline=2, micro_batches=4, checkpoint=True, **way)
        add("pipeline", "gpt-tall", (1000,), pipeline=2, micro_batches=4, stage_layers=[5, 3], **way)
        add("pipeline", "llama-tall", (1000,), pipeline=4, micro_batches=4, stage_layers=[3, 2, 2, 1], **way)
        add("pipeline", "llama-tall", (1000,), pipeline=4, micro_batches=4, slow=100, **way)
    add("replicas", both, all_rates, data=2)
    add("replicas", both, fast, data=4)
    add("replicas", both, (500,), data=8)
    add("sharded", both, all_rates, data=2, sharding="full")
    add("sharded", both, fast, data=4, sharding="full")
    add("sharded", both, fast, data=4, sharding="hybrid", shard=2)
    add("sharded", both, (1000,), data=2, sharding="gradients")
    add("sharded", both, (1000,), data=4, sharding="gradients")
    add("sharded", both, (500,), data=8, sharding="full")
    add("sharded", both, (2000,), data=2, sharding="full", micro_batches=2)
    add("sharded", both, (2000,), data=2, sharding="full", batch=4, checkpoint=True)
    add("optimizer", both, all_rates, data=2, sharding="optimizer")
    add("optimizer", both, slow + (2000,), data=4, sharding="optimizer")
    add("optimizer", both, (500,), data=8, sharding="optimizer")
    add("optimizer", both, (1000,), data=2, sharding="optimizer", micro_batches=3)
    add("optimizer", both, (1000,), data=4, sharding="optimizer", slow=300)
    add("context", both, all_rates, context=2)
    add("context", both, slow + (2000,), context=4)
    add("context", both, (500,), context=8)
    add("context", both, (1000,), context=2, micro_batches=2)
    add("context", both, (1000,), context=2, batch=4, checkpoint=True)
    for skew in (1.0, 1.5):
        add("experts", "moe", all_rates, batch=4, data=2, expert=2, skew=skew)
    for skew in (1.0, 1.5, 2.0):
        add("experts", "moe", slow + (2000,), batch=4, data=4, expert=4, skew=skew)
    for skew in (1.0, 2.0):
        add("experts", "moe", (500,), batch=4, data=8, expert=8, skew=skew)
    add("experts", "moe", (1000,), batch=4, data=2, expert=2, micro_batches=2)
    piped = dict(schedule="1f1b", micro_batches=4, batch=1)
    add("mixed", both, fast, data=2, tensor=2)
    add("mixed", both, fast, data=2, tensor=2, sequence=True)
    add("mixed", both, fast, data=2, context=2)
    add("mixed", both, fast, tensor=2, context=2)
    add("mixed", both, fast, data=2, pipeline=2, **piped)
    add("mixed", both, fast, tensor=2, pipeline=2, **piped)
    add("mixed", both, (500,), data=2, tensor=2, pipeline=2, **piped)
    add("mixed", both, (500,), data=2, tensor=4)
    add("mixed", both, (500,), data=2, pipeline=4, **piped)
    # Others' traffic takes a part of the cores, too, of which its hosts leave half.
    for more in (dict(uplink=200), dict(uplink=500), dict(background=[0, 3], share=0.25, hosts=4)):
        add("replicas", both, (1000,), data=4, **more)
        add("tensor", both, (1000,), tensor=4, **more)
        add("pipeline", both, (1000,), pipeline=4, **dict(piped, **more))
        add("sharded", both, (1000,), data=4, sharding="full", **more)
        add("experts", "moe", (1000,), batch=4, data=4, expert=4, **more)
        add("mixed", both, (1000,), data=2, tensor=2, **more)
    # Hosts are made anew where the next case wants others.
    return collectives() + sorted(cases, key=lambda case: case["hosts"])


def collectives():
    """Operations of Gloo alone, on `batch` bytes of every rank."""
    cases = []
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"):
        for workers, rates in ((2, (500, 1000, 5000)), (4, (500, 2000)), (8, (500,))):
            if operation == "send" and workers > 2:
                continue
            share, hosts = SHARES[workers]
            for size in (8_192, 262_144, 4_194_304):
                cases += [dict(USUAL, kind="sum", model="none", operation=operation, batch=size, workers=workers,
                               rate=rate, share=share, hosts=hosts, name=f"{operation}{workers}-{size}-{rate}")
                          for rate in rates]
    return cases


def parallel_name_of(case):
    words = [case["model"], f"b{case['batch']}"]
    words += [f"{name}{case[name]}" for name in ORDER if case[name] > 1] or ["single"]
    words += [f"{name}{case[name]}" for name in ("expert", "shard", "micro_batches") if case[name] > 1]
    for word in ("sharding", "schedule"):
        if case[word]:
            words.append(case[word] + ("2" if word == "schedule" and case["interleave"] > 1 else ""))
    if case["sequence"]:
        words.append("sequence")
    if case["stage_layers"]:
        words.append("layers" + ".".join(map(str, case["stage_layers"])))
    if case["skew"] != 1.0:
        words.append(f"skew{case['skew']:g}")
    if case["checkpoint"]:
        words.append("checkpoint")
    words.append(str(case["rate"]))
    words += [f"{word}{case[key]}" for word, key in (("uplink", "uplink"), ("slow", "slow"), ("core", "slow_core"))
              if case[key]]
    if case["background"]:
        words.append("traffic")
    if case["workers"] == 1 and case["share"] < 1:
        words.append({0.5: "half", NINTH: "ninth"}[case["share"]])
    return "-".join(words)


def model_cell(shape):
    preset = "gpt2" if shape["family"] == "gpt" else "mixtral-8x7b" if shape["experts"] else "llama2-7b"
    keys = {name: shape[name] for name in ("layers", "hidden", "heads", "vocabulary", "sequence")}
    if preset == "gpt2":
        keys["tied_embeddings"] = "false"
    else:
        keys.update(kv_heads=shape["heads"], ffn_hidden=shape["ffn"])
    if shape["experts"]:
        keys.update(experts=shape["experts"], experts_per_token=shape["per_token"])
    return mapping(dict(preset=preset, **keys))


def parallel_cells(run, speed):
    """Cells of a case that divides a model; `speed` of a whole core."""
    case = dict(USUAL, **run)
    piped = case["pipeline"] > 1
    cells = {"case": "hosts-" + case["name"], "group": f"hosts-{case['kind']}", "base": "parallel-hosts",
             "cluster.nodes": case["workers"], "cluster.network.nic_bandwidth": f"{case['rate']} Mbit/s",
             "workload.train.model": model_cell(FAMILIES[case["model"]]), "workload.train.micro_batch": case["batch"],
             "workload.train.global_batch": case["batch"] * case["micro_batches"] * case["data"],
             "plan.tensor": case["tensor"], "plan.context": case["context"], "plan.data": case["data"],
             "plan.expert": case["expert"], "plan.pipeline": case["pipeline"], "plan.interleave": case["interleave"],
             "replay.model": case["model"], "replay.way": parallel_way_of(case), "replay.core": case["share"]}
    share = round(case["share"] * speed, 3)
    if share != 1:
        cells["cluster.node.gpu.processor.share"] = share
    if case["sequence"]:
        cells["plan.sequence_parallel"] = "true"
    if case["skew"] != 1:
        cells["workload.train.model"] = cells["workload.train.model"][:-2] + f", expert_imbalance: {case['skew']} }}"
    if piped:
        cells["plan.schedule"] = case["schedule"]
        cells["plan.sync.overlap"] = "false"
    if case["stage_layers"]:
        cells["plan.stage_layers"] = str(case["stage_layers"])
    if case["sharding"] == "optimizer":
        cells["plan.zero"] = 1
    elif case["sharding"]:
        cells["plan.trainer"], cells["plan.sync.overlap"] = "fsdp", "false"
        cells["plan.zero"] = f"{{ stage: 3, shard: {case['shard']} }}" if case["shard"] else 3
        if case["sharding"] == "gradients":
            cells["plan.reshard_after_forward"] = "false"
    if case["checkpoint"]:
        cells["workload.train.recompute"] = "full"
    if case["uplink"]:
        oversubscription = case["rate"] * (case["workers"] // 2) / case["uplink"]
        cells["cluster.network.fabric"] = (f"{{ kind: fat_tree, nodes_per_leaf: {case['workers'] // 2}, "
                                           f"oversubscription: {oversubscription:g} }}")
    faults = faults_of(case)
    if case["slow_core"]:
        faults.append(f"{{ node: {case['workers'] - 1}, gpu: 0, speed: {1 / case['slow_core']:.0%} }}")
    if faults:
        cells["cluster.faults"] = f"[{', '.join(faults)}]"
    if case["background"]:
        cells["background"] = "[{{ from: node{}, to: node{} }}]".format(*case["background"])
    return cells


def parallel_way_of(case):
    words = [f"{name} {case[name]}" for name in ORDER + ("expert",) if case[name] > 1]
    words += [case[word] for word in ("schedule", "sharding") if case[word]]
    for word, said in (("sequence parallel", case["sequence"]), ("checkpointing", case["checkpoint"]),
                       ("thin uplink", case["uplink"]), ("one slow card", case["slow"]),
                       ("one slow core", case["slow_core"]), ("traffic beside", case["background"])):
        words += [word] if said else []
    return ", ".join(words or ["one process"])
