"""What host_steps.py measures, and its results as a table of cases for `foretrain validate`."""

import csv

FIRST_LAYERS = "family: mlp, input: [784]"
LINEAR = "{{ linear: {{ out: {} }} }}".format
MODELS = {  # how the scenario calls it; batch; transformers: layers, hidden, heads, vocabulary, sequence
    "mlp-d2l": ("mlp-d2l", 256, None),
    "mlp-wide": (f"{{ {FIRST_LAYERS}, layers: [{LINEAR(2048)}, relu, {LINEAR(2048)}, relu, {LINEAR(10)}] }}", 64, None),
    "lenet": ("lenet", 128, None),
    "resnet-18": ("resnet-18-d2l", 8, None),
    "gpt-small": ("{ preset: gpt2, layers: 4, hidden: 256, heads: 4, vocabulary: 4096, sequence: 128 }", 4,
                  (4, 256, 4, 4096, 128)),
    "bert-small": ("{ preset: bert-base, layers: 4, hidden: 256, heads: 4, vocabulary: 4096, sequence: 128 }", 4,
                   (4, 256, 4, 4096, 128)),
}
NETWORKS = {"resnet-18": "resnet-18-d2l"}  # as models.py calls them, where that is another name
SHAPES = {"mlp-d2l": (512,), "mlp-wide": (784,), "lenet": (1, 28, 28), "resnet-18": (1, 28, 28)}
CLASSES = {"mlp-d2l": 2}


def designed_cases():
    """Each case as a dict: kind (alone, ring, server, async), model, batch, workers, rates (Mbit/s), share, hosts."""
    cases = []

    def add(kind, workers, share, hosts, rates, models=MODELS, slow=None, larger=1):
        for model in models:
            for rate in rates:
                if model == "resnet-18" and rate == 100:
                    continue  # tens of seconds a step
                case = dict(kind=kind, model=model, batch=MODELS[model][1] * larger, workers=workers, rate=rate,
                            share=share, hosts=hosts, slow=slow)
                case["name"] = name_of(case)
                cases.append(case)

    add("alone", 1, 1.0, 2, (1000,))
    add("alone", 1, 1.0, 2, (1000,), larger=4)
    add("ring", 2, 1.0, 2, (100, 500, 1000, 2000))
    add("server", 1, 1.0, 2, (100, 500, 1000, 2000))
    add("ring", 2, 1.0, 2, (500,), larger=4)
    add("alone", 1, 0.5, 4, (1000,))
    add("ring", 4, 0.5, 4, (100, 500, 1000))
    add("server", 3, 0.5, 4, (100, 500, 1000))
    add("async", 3, 0.5, 4, (500, 1000))
    add("ring", 4, 0.5, 4, (1000,), slow=300)
    add("server", 3, 0.5, 4, (1000,), slow=300)
    add("ring", 3, 0.5, 4, (500, 1000))
    add("ring", 2, 0.5, 4, (100, 500, 1000))
    add("server", 2, 0.5, 4, (100, 500, 1000))
    add("async", 2, 0.5, 4, (500, 1000))
    return cases


def name_of(case):
    if case["kind"] == "alone":
        return f"{case['model']}-b{case['batch']}-alone{'-half' if case['share'] < 1 else ''}"
    slow = f"-slow{case['slow']}" if case["slow"] else ""
    half = "-half" if case["share"] < 1 else ""
    return f"{case['model']}-b{case['batch']}-{case['kind']}{case['workers']}-{case['rate']}{slow}{half}"


def scenario_cells(case):
    """The case's cells of a table for `foretrain validate`."""
    served = case["kind"] in ("server", "async")
    cells = {"case": "hosts-" + case["name"], "group": f"hosts-{case['kind']}",
             "base": "servers-hosts" if served else "data-parallel-hosts", "cluster.nodes": case["workers"] + served,
             "cluster.network.nic_bandwidth": f"{case['rate']} Mbit/s",
             "workload.train.model": MODELS[case["model"]][0], "workload.train.micro_batch": case["batch"],
             "plan.data": case["workers"], "plan.sync.algorithm": "parameter_server" if served else "ring"}
    if case["share"] < 1:
        cells["cluster.node.gpu.processor.share"] = case["share"]
    if case["slow"]:
        links = (f"{{ node: 0, link: \"{link}\", bandwidth: {case['slow']} Mbit/s }}"
                 for link in ("nic0>fabric", "fabric>nic0"))
        cells["cluster.faults"] = f"[{', '.join(links)}]"
    if case["kind"] == "async":
        cells["plan.sync.consistency"] = "asynchronous"
        cells["plan.sync.barrier"] = "false"
    return cells


COLUMNS = ["case", "group", "base", "cluster.nodes", "cluster.network.nic_bandwidth", "cluster.node.gpu.processor.share",
           "cluster.faults", "workload.train.model", "workload.train.micro_batch", "plan.data",
           "plan.sync.algorithm", "plan.sync.consistency", "plan.sync.barrier", "measured.step_time",
           "replay.spread", "replay.cores_busy", "replay.others", "source"]


def write_table(path, measured):
    where = measured["machine"]
    source = (f"validate/pytorch/host_steps.py, PyTorch {where['torch']}, {where['processor']} with {where['cores']} "
              f"cores, Linux {where['kernel']}, {where['date']}")
    with open(path, "w", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        table.writeheader()
        for run in measured["runs"]:
            table.writerow(dict(scenario_cells(run), **{
                "measured.step_time": f"{run['median_s'] * 1e3:.4f} ms", "replay.spread": f"{run['spread']:.3f}",
                "replay.cores_busy": run["cores_busy"], "replay.others": run["others"], "source": source}))
