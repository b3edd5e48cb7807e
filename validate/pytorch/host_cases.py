"""What host_steps.py measures of data parallel training and servers, and its rows of a table for `foretrain validate`."""

import math
import statistics

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
LATER_MODELS = {  # measured when the model of processors was there
    "mlp-deep": (f"{{ family: mlp, input: [256], layers: [{f'{LINEAR(512)}, relu, ' * 11}{LINEAR(10)}] }}", 128, None),
    "resnet-50": ("resnet-50", 4, None),
    "gpt-broad": ("{ preset: gpt2, layers: 2, hidden: 512, heads: 8, vocabulary: 2048, sequence: 256 }", 2,
                  (2, 512, 8, 2048, 256)),
}
MODELS.update(LATER_MODELS)
NETWORKS = {"resnet-18": "resnet-18-d2l"}  # as models.py calls them, where that is another name
SHAPES = {"mlp-d2l": (512,), "mlp-wide": (784,), "lenet": (1, 28, 28), "resnet-18": (1, 28, 28), "mlp-deep": (256,),
          "resnet-50": (3, 224, 224)}
CLASSES = {"mlp-d2l": 2, "resnet-50": 1000}
RATE = 1e-4  # of learning: small, the loss stays finite
EARLIER = [model for model in MODELS if model not in LATER_MODELS]
NINTH = 0.22  # of a core: nine hosts on two cores
# What a case is unless it says otherwise, and what measurements leave out.
USUAL = dict(servers=0, beside=False, bound=None, accumulate=1, checkpoint=False, hook=None, slow=None, slow_core=None,
             background=None, timeline=False, uplink=None, tensor=1, sequence=False, context=1, data=1, pipeline=1,
             schedule=None, interleave=1, micro_batches=1, stage_layers=None, sharding=None, shard=0, expert=1, skew=1.0,
             operation="all_reduce", images=1, text=64, freeze=[], lora=0)


def case_of(kind, model, workers, share, hosts, rate, larger=1, **rest):
    case = dict(USUAL, kind=kind, model=model, batch=round(MODELS[model][1] * larger), workers=workers, rate=rate,
                share=share, hosts=hosts, **rest)
    if kind in SERVED and not case["servers"]:
        case["servers"] = 1
    case["name"] = name_of(case)
    return case


SERVED = ("server", "async", "bounded")


def designed_cases():
    """Each case as a dict: kind (alone, ring, or SERVED), model, batch, workers, rates (Mbit/s), share, hosts."""
    return sums() + later_cases() + earlier_cases()


def earlier_cases():
    cases = []

    def add(kind, workers, share, hosts, rates, **rest):
        for model in EARLIER:
            for rate in rates:
                if model == "resnet-18" and rate == 100:
                    continue  # tens of seconds a step
                cases.append(case_of(kind, model, workers, share, hosts, rate, **rest))

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


def later_cases():
    """New models, faster cards, more workers and servers, and the ways to send and to keep less."""
    cases = []

    def add(kind, models, workers, share, hosts, rates, **rest):
        cases.extend(case_of(kind, model, workers, share, hosts, rate, **rest)
                     for model in models.split() for rate in rates)

    new, three, four = "mlp-deep gpt-broad resnet-50", "mlp-wide lenet gpt-small", "mlp-wide lenet gpt-small resnet-18"
    add("alone", new, 1, 1.0, 2, (1000,))
    add("alone", four + " bert-small", 1, 1.0, 2, (1000,), larger=2)
    add("alone", three, 1, 1.0, 2, (1000,), accumulate=4)
    add("alone", "gpt-small bert-small", 1, 1.0, 2, (1000,), larger=4, checkpoint=True)
    add("ring", new, 2, 1.0, 2, (1000, 2000))
    add("ring", "mlp-wide gpt-small", 2, 1.0, 2, (1000,), larger=2, timeline=True)
    add("ring", four + " mlp-deep", 2, 1.0, 2, (5000, 10000))
    add("ring", "mlp-wide gpt-small resnet-18", 2, 1.0, 2, (500, 1000), hook="fp16")
    add("ring", three, 2, 1.0, 2, (500,), accumulate=4)
    add("ring", "gpt-small bert-small", 2, 1.0, 2, (1000,), larger=4, checkpoint=True)
    add("ring", three, 2, 1.0, 2, (1000,), slow_core=2)
    add("server", "mlp-deep gpt-broad", 1, 1.0, 2, (1000, 2000))
    add("server", four, 1, 1.0, 2, (5000, 10000))
    add("server", three, 2, 0.5, 4, (500, 1000), servers=2)
    add("server", "resnet-18 mlp-deep gpt-broad", 2, 0.5, 4, (1000,), servers=2)
    add("ring", "mlp-deep gpt-broad", 4, 0.5, 4, (1000,))
    add("ring", "mlp-wide gpt-small", 4, 0.5, 4, (500,), hook="fp16")
    add("ring", three, 4, 0.5, 4, (1000,), slow_core=2)
    add("ring", three, 4, 0.5, 4, (2000,))
    add("server", three, 3, 0.5, 4, (1000,), slow_core=2)
    add("async", three, 3, 0.5, 4, (1000,), slow_core=2)
    add("bounded", three, 3, 0.5, 4, (1000,), slow_core=2, bound=1)
    add("bounded", three, 3, 0.5, 4, (1000,), slow_core=2, bound=4)
    add("ring", three, 2, 0.5, 4, (500,), background=[0, 1])
    add("server", three, 2, 0.5, 4, (500,), background=[0, 2])
    add("server", three, 4, 0.5, 4, (500, 1000), servers=4, beside=True)
    add("server", "resnet-18 mlp-deep gpt-broad", 4, 0.5, 4, (1000,), servers=4, beside=True)
    add("ring", "mlp-d2l lenet gpt-small mlp-wide", 8, NINTH, 9, (200, 500))
    add("server", "mlp-d2l lenet mlp-deep", 8, NINTH, 9, (200, 500))
    add("async", "mlp-d2l lenet", 8, NINTH, 9, (500,))
    return cases


def sums():
    """All-reduces alone, of `batch` bytes; not training, from them the rate of sending is taken."""
    cases = []
    for workers, share, hosts, rates in ((2, 1.0, 2, (500, 1000, 2000, 5000, 10000)), (4, 0.5, 4, (500, 1000, 2000)),
                                         (8, NINTH, 9, (500,))):
        for rate in rates:
            for size in (660_000, 4_000_000, 16_000_000):
                case = dict(USUAL, kind="sum", batch=size, workers=workers, rate=rate, share=share, hosts=hosts,
                            model="none", name=f"sum{workers}-{size}-{rate}")
                cases.append(case)
    for rate in (1000, 10000):
        cases.append(dict(cases[1], rate=rate, hook="fp16", batch=8_000_000, name=f"sum2-fp16-8000000-{rate}"))
    return cases


def name_of(case):
    words = [case["model"], f"b{case['batch']}"]
    if case["kind"] == "alone":
        words.append("alone")
    else:
        words += [f"{case['kind']}{case['workers']}", str(case["rate"])]
    if case["servers"] > 1:
        words.append(f"{case['servers']}servers" + ("-beside" if case["beside"] else ""))
    for word, value in (("bound", case["bound"]), ("slow", case["slow"]), ("core", case["slow_core"])):
        if value is not None:
            words.append(f"{word}{value}")
    if case["accumulate"] > 1:
        words.append(f"accumulate{case['accumulate']}")
    words += [word for word, said in (("checkpoint", case["checkpoint"]), (case["hook"], case["hook"]),
                                      ("traffic", case["background"])) if said]
    if case["share"] < 1:
        words.append({0.5: "half", NINTH: "ninth"}[case["share"]])
    return "-".join(words)


def share_of(case, reference):
    """Of a core: what is stated, times what single operators beside the run got done in a second of the processor's
    time, compared with when the figures of the processor were measured."""
    if not reference or "probes" not in case:
        return case["share"]
    equal = case["probes"][:-1] if case["slow_core"] else case["probes"]
    # What a loop takes tells more of the caches than of the core.
    ratios = [math.log(reference[name] / probe[name]) for probe in equal for name in ("product", "convolution")]
    return round(case["share"] * math.exp(statistics.mean(ratios)), 3)


def way_of(case):
    """What tells the case from others of its model, workers, rate and batch."""
    words = [{"alone": "one process", "async": "asynchronous server", "bounded": f"bounded({case['bound']})",
              "server": "server", "ring": "ring"}[case["kind"]]]
    if case["servers"] > 1:
        words = ["server on every worker" if case["beside"] else f"{case['servers']} servers"]
    if case["batch"] != MODELS[case["model"]][1]:
        words.append(f"batch {case['batch']}")
    if case["slow_core"]:
        words.append("one slow core")
    if case["slow"]:
        words.append("one slow card")
    if case["accumulate"] > 1:
        words.append("accumulation")
    if case["checkpoint"]:
        words.append("checkpointing")
    if case["hook"]:
        words.append(case["hook"])
    if case["background"]:
        words.append("traffic beside")
    return ", ".join(words)


def faults_of(case):
    return [f"{{ node: 0, link: \"{link}\", bandwidth: {case['slow']} Mbit/s }}"
            for link in ("nic0>fabric", "fabric>nic0") if case["slow"]]


def mapping(keys):
    """As scenarios write it."""
    return "{ " + ", ".join(f"{key}: {value}" for key, value in keys.items()) + " }"


def scenario_cells(run, reference):
    """The case's cells of a table for `foretrain validate`."""
    case = dict(USUAL, **run)
    served = case["kind"] in SERVED
    nodes = case["workers"] + (0 if case["beside"] else max(case["servers"], int(served)))
    cells = {"case": "hosts-" + case["name"], "group": f"hosts-{case['kind']}",
             "base": "servers-hosts" if served else "data-parallel-hosts", "cluster.nodes": nodes,
             "cluster.network.nic_bandwidth": f"{case['rate']} Mbit/s",
             "workload.train.model": MODELS[case["model"]][0], "workload.train.micro_batch": case["batch"],
             "plan.data": case["workers"], "plan.sync.algorithm": "parameter_server" if served else "ring"}
    share = share_of(case, reference)
    if share != 1:
        cells["cluster.node.gpu.processor.share"] = min(share, 1.0)
    cells["replay.model"], cells["replay.way"] = case["model"], way_of(case)
    cells["replay.core"] = case["share"]
    faults = faults_of(case)
    if case["slow_core"] and served:
        cells["plan.sync.slow_workers"] = f"{{ count: 1, factor: {case['slow_core']} }}"
    elif case["slow_core"]:
        faults.append(f"{{ node: {case['workers'] - 1}, gpu: 0, speed: {1 / case['slow_core']:.0%} }}")
    if faults:
        cells["cluster.faults"] = f"[{', '.join(faults)}]"
    if case["kind"] == "async":
        cells["plan.sync.consistency"] = "asynchronous"
    if case["kind"] == "bounded":
        cells["plan.sync.consistency"] = f"bounded({case['bound']})"
    if case["kind"] in ("async", "bounded"):
        cells["plan.sync.barrier"] = "false"
    if case["servers"] > 1:
        cells["plan.sync.servers"] = case["servers"]
        cells["plan.sync.split"] = "64 KiB"
    if case["beside"]:
        cells["plan.sync.placement"] = "cpu"
    if case["accumulate"] > 1:
        cells["workload.train.global_batch"] = case["batch"] * case["workers"] * case["accumulate"]
    if case["checkpoint"]:
        cells["workload.train.recompute"] = "full"
    if case["hook"]:
        cells["plan.sync.compression"] = case["hook"]
    if case["background"]:
        cells["background"] = "[{{ from: node{}, to: node{} }}]".format(*case["background"])
    return cells
