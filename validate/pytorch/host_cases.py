"""Cases of host_steps.py: data parallel training and servers, models that are divided over hosts, vision–language
models, and collectives alone."""

import math

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
EARLIER = list(MODELS)
MODELS.update({  # measured when the model of processors was there
    "mlp-deep": (f"{{ family: mlp, input: [256], layers: [{f'{LINEAR(512)}, relu, ' * 11}{LINEAR(10)}] }}", 128, None),
    "resnet-50": ("resnet-50", 4, None),
    "gpt-broad": ("{ preset: gpt2, layers: 2, hidden: 512, heads: 8, vocabulary: 2048, sequence: 256 }", 2,
                  (2, 512, 8, 2048, 256)),
})
NETWORKS = {"resnet-18": "resnet-18-d2l"}  # as models.py calls them, where that is another name
SHAPES = {"mlp-d2l": (512,), "mlp-wide": (784,), "lenet": (1, 28, 28), "resnet-18": (1, 28, 28), "mlp-deep": (256,),
          "resnet-50": (3, 224, 224)}
CLASSES = {"mlp-d2l": 2, "resnet-50": 1000}
FAMILIES = {  # transformers that are divided: those of host_parallel.py
    "gpt-tall": dict(family="gpt", layers=8, hidden=384, heads=8, ffn=1536, vocabulary=4096, sequence=128, experts=0),
    "llama-tall": dict(family="llama", layers=8, hidden=384, heads=8, ffn=1024, vocabulary=4096, sequence=128,
                       experts=0),
    "moe": dict(family="llama", layers=4, hidden=256, heads=4, ffn=512, vocabulary=4096, sequence=128, experts=8,
                per_token=2),
}
VISION = {  # an encoder, what makes tokens of its patches, and a language model, by the keys of scenarios
    "llava-small": dict(
        vision=dict(layers=6, hidden=256, heads=4, image_size=128, patch_size=16),
        projector=dict(layers=2, merge=1),
        language=dict(layers=6, hidden=384, heads=6, ffn_hidden=1024, vocabulary=4096, sequence=320)),
    "llava-merged": dict(  # most of its work is the encoder's; four patches become one token
        vision=dict(layers=8, hidden=384, heads=6, image_size=224, patch_size=16),
        projector=dict(layers=2, merge=2),
        language=dict(layers=4, hidden=256, heads=4, ffn_hidden=704, vocabulary=4096, sequence=320)),
}
RATE = 1e-4  # of learning: small, the loss stays finite
NINTH = 0.22  # of a core: nine hosts on two cores
HALF = dict(share=0.5, hosts=4)
SHARES = {1: (1.0, 2), 2: (1.0, 2), 3: (0.5, 4), 4: (0.5, 4), 8: (NINTH, 9)}  # by workers: of a core, and hosts
SERVED = ("server", "async", "bounded")
ORDER = ("tensor", "context", "data", "pipeline")  # of ranks that divide a model, the fastest first
PARALLEL = ("single", "replicas", "tensor", "pipeline", "sharded", "optimizer", "context", "experts", "mixed")
# Defaults of a case, and values that measurements leave out.
USUAL = dict(servers=0, beside=False, bound=None, accumulate=1, checkpoint=False, hook=None, slow=None, slow_core=None,
             background=None, timeline=False, uplink=None, tensor=1, sequence=False, context=1, data=1, pipeline=1,
             schedule=None, interleave=1, micro_batches=1, stage_layers=None, sharding=None, shard=0, expert=1, skew=1.0,
             operation="all_reduce", images=1, text=64, freeze=[], lora=0)


class Cases:
    """Each case as a dict: kind, model, batch, workers, rate of the cards (Mbit/s), share of a core, hosts, and what is
    not USUAL."""

    def __init__(self):
        self.all = []

    def add(self, kind, models, rates=(1000,), workers=None, batch=None, larger=1, **rest):
        for model in models.split():
            for rate in rates:
                case = dict(USUAL, kind=kind, model=model, rate=rate, **rest)
                case["workers"] = workers or math.prod(case[name] for name in ORDER)
                case["batch"] = batch or round(MODELS[model][1] * larger)
                share, hosts = SHARES[case["workers"]]
                case["share"], case["hosts"] = rest.get("share", share), rest.get("hosts", hosts)
                if kind in SERVED and not case["servers"]:
                    case["servers"] = 1
                case["name"] = name_of(case)
                self.all.append(case)

    def add_sum(self, operation, batch, workers, rate, name, **rest):
        """A collective alone, on `batch` bytes of every rank; not training."""
        share, hosts = SHARES[workers]
        self.all.append(dict(USUAL, kind="sum", model="none", operation=operation, batch=batch, workers=workers,
                             rate=rate, share=share, hosts=hosts, name=name, **rest))


def training_cases():
    """Data parallel training and servers. All-reduces first: from them the rate of sending is taken."""
    cases = Cases()
    for workers, rates in ((2, (500, 1000, 2000, 5000, 10000)), (4, (500, 1000, 2000)), (8, (500,))):
        for rate in rates:
            for size in (660_000, 4_000_000, 16_000_000):
                cases.add_sum("all_reduce", size, workers, rate, f"sum{workers}-{size}-{rate}")
    for rate in (1000, 10000):
        cases.add_sum("all_reduce", 8_000_000, 2, rate, f"sum2-fp16-8000000-{rate}", hook="fp16")
    add_later_cases(cases.add)
    add_earlier_cases(cases.add)
    # These take tens of seconds a step.
    return [case for case in cases.all if (case["model"], case["rate"]) != ("resnet-18", 100)]


def add_earlier_cases(add):
    every = " ".join(EARLIER)
    add("alone", every)
    add("alone", every, larger=4)
    add("ring", every, (100, 500, 1000, 2000), 2)
    add("server", every, (100, 500, 1000, 2000), 1)
    add("ring", every, (500,), 2, larger=4)
    add("alone", every, **HALF)
    add("ring", every, (100, 500, 1000), 4)
    add("server", every, (100, 500, 1000), 3)
    add("async", every, (500, 1000), 3)
    add("ring", every, workers=4, slow=300)
    add("server", every, workers=3, slow=300)
    add("ring", every, (500, 1000), 3)
    add("ring", every, (100, 500, 1000), 2, **HALF)
    add("server", every, (100, 500, 1000), 2, **HALF)
    add("async", every, (500, 1000), 2, **HALF)


def add_later_cases(add):
    """New models, faster cards, more workers and servers, and the ways to send and to keep less."""
    new, three, four = "mlp-deep gpt-broad resnet-50", "mlp-wide lenet gpt-small", "mlp-wide lenet gpt-small resnet-18"
    add("alone", new)
    add("alone", four + " bert-small", larger=2)
    add("alone", three, accumulate=4)
    add("alone", "gpt-small bert-small", larger=4, checkpoint=True)
    add("ring", new, (1000, 2000), 2)
    add("ring", "mlp-wide gpt-small", workers=2, larger=2, timeline=True)
    add("ring", four + " mlp-deep", (5000, 10000), 2)
    add("ring", "mlp-wide gpt-small resnet-18", (500, 1000), 2, hook="fp16")
    add("ring", three, (500,), 2, accumulate=4)
    add("ring", "gpt-small bert-small", workers=2, larger=4, checkpoint=True)
    add("ring", three, workers=2, slow_core=2)
    add("server", "mlp-deep gpt-broad", (1000, 2000), 1)
    add("server", four, (5000, 10000), 1)
    add("server", three, (500, 1000), 2, servers=2, **HALF)
    add("server", "resnet-18 mlp-deep gpt-broad", workers=2, servers=2, **HALF)
    add("ring", "mlp-deep gpt-broad", workers=4)
    add("ring", "mlp-wide gpt-small", (500,), 4, hook="fp16")
    add("ring", three, workers=4, slow_core=2)
    add("ring", three, (2000,), 4)
    add("server", three, workers=3, slow_core=2)
    add("async", three, workers=3, slow_core=2)
    add("bounded", three, workers=3, slow_core=2, bound=1)
    add("bounded", three, workers=3, slow_core=2, bound=4)
    add("ring", three, (500,), 2, background=[0, 1], **HALF)
    add("server", three, (500,), 2, background=[0, 2], **HALF)
    add("server", three, (500, 1000), 4, servers=4, beside=True)
    add("server", "resnet-18 mlp-deep gpt-broad", workers=4, servers=4, beside=True)
    add("ring", "mlp-d2l lenet gpt-small mlp-wide", (200, 500), 8)
    add("server", "mlp-d2l lenet mlp-deep", (200, 500), 8)
    add("async", "mlp-d2l lenet", (500,), 8)


def parallel_cases():
    """Every way to divide a transformer over hosts, alone and mixed, and what disturbs it; before them, Gloo's
    collectives alone."""
    made, sums = Cases(), Cases()
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"):
        for workers, rates in ((2, (500, 1000, 5000)), (4, (500, 2000)), (8, (500,))):
            for size in (8_192, 262_144, 4_194_304) if operation != "send" or workers == 2 else ():
                for rate in rates:
                    sums.add_sum(operation, size, workers, rate, f"{operation}{workers}-{size}-{rate}")

    def add(kind, models, rates, batch=2, **rest):
        made.add(kind, models, rates, batch=batch, **rest)

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
    return sums.all + sorted(made.all, key=lambda case: case["hosts"])


def vision_cases():
    """Batches, images, and what is trained; then replicas behind cards of several rates."""
    cases = Cases()

    def add(models, rates=(1000,), workers=1, batch=1, **rest):
        cases.add("vision", models, rates, workers, batch, **rest)

    both, first_stage = "llava-small llava-merged", ["vision", "language"]
    for batch in (1, 2, 4):
        add(both, batch=batch)
    for images in (2, 4):
        add(both, images=images)
    add("llava-small", text=192)
    add("llava-merged", batch=4, checkpoint=True)
    for freeze in (["vision"], first_stage):
        add(both, batch=2, freeze=freeze)
    add("llava-small", batch=2, freeze=["vision"], lora=8)
    add("llava-small", images=4, freeze=["vision"])
    add(both, (500, 1000, 2000), workers=2)
    add(both, workers=2, freeze=["vision"])
    add("llava-merged", workers=2, freeze=first_stage)
    add("llava-small", workers=2, freeze=["vision"], lora=8)
    add("llava-small", (500,), workers=2, accumulate=4)
    add("llava-merged", workers=2, images=2, freeze=["vision"], accumulate=2)
    add("llava-small", (500, 1000, 2000), workers=4)
    add("llava-merged", workers=4)
    add("llava-merged", workers=4, freeze=["vision"])
    return cases.all


def changed(case, words):
    """The words of what is not as usual: by key, a form that may name the value."""
    return [form.format(case[key]) for key, form in words.items() if case[key] != USUAL[key]]


def name_of(case):
    kind, rate = case["kind"], str(case["rate"])
    if kind in PARALLEL:
        words = [f"{name}{case[name]}" for name in ORDER if case[name] > 1] or ["single"]
        words += changed(case, dict(expert="expert{}", shard="shard{}", micro_batches="micro_batches{}", sharding="{}"))
        words += [case["schedule"] + "2" * (case["interleave"] > 1)] if case["schedule"] else []
        words += changed(case, dict(sequence="sequence"))
        words += ["layers" + ".".join(map(str, case["stage_layers"]))] if case["stage_layers"] else []
        words += [f"skew{case['skew']:g}"] if case["skew"] != 1.0 else []
        words += changed(case, dict(checkpoint="checkpoint")) + [rate]
        words += changed(case, dict(uplink="uplink{}", slow="slow{}", slow_core="core{}", background="traffic"))
    elif kind == "vision":
        words = ["alone"] if case["workers"] == 1 else [f"ring{case['workers']}", rate]
        words += changed(case, dict(images="images{}", text="text{}", accumulate="accumulate{}"))
        words += ["frozen"] * bool(case["freeze"]) + case["freeze"]
        words += changed(case, dict(lora="lora{}", checkpoint="checkpoint"))
    else:
        words = ["alone"] if kind == "alone" else [f"{kind}{case['workers']}", rate]
        words += [f"{case['servers']}servers" + "-beside" * case["beside"]] if case["servers"] > 1 else []
        words += changed(case, dict(bound="bound{}", slow="slow{}", slow_core="core{}", accumulate="accumulate{}",
                                    checkpoint="checkpoint", hook="{}", background="traffic"))
    said = kind != "vision" and (kind not in PARALLEL or case["workers"] == 1)
    words += [{0.5: "half", NINTH: "ninth"}[case["share"]]] if said and case["share"] < 1 else []
    return "-".join([case["model"], f"b{case['batch']}"] + words)


def way_of(case):
    """Name that separates the case from others of its model, workers, rate and batch."""
    kind = case["kind"]
    disturbed = dict(slow="one slow card", slow_core="one slow core", background="traffic beside")
    if kind in PARALLEL + ("lifetime",):
        words = [f"{name} {case[name]}" for name in ORDER + ("expert",) if case[name] > 1]
        words += changed(case, dict(schedule="{}", sharding="{}", sequence="sequence parallel",
                                    checkpoint="checkpointing", uplink="thin uplink", **disturbed))
        return ", ".join(words or ["one process"])
    if kind == "vision":
        words = ["one process" if case["workers"] == 1 else "ring"]
        words += changed(case, dict(images="{} images", text="{} tokens of text"))
        words += [f"frozen {' and '.join(case['freeze'])}"] if case["freeze"] else []
        words += changed(case, dict(lora="adapters", accumulate="accumulation", checkpoint="checkpointing"))
        return ", ".join(words)
    words = [{"alone": "one process", "async": "asynchronous server", "bounded": f"bounded({case['bound']})",
              "server": "server", "ring": "ring"}[kind]]
    if case["servers"] > 1:
        words = ["server on every worker" if case["beside"] else f"{case['servers']} servers"]
    words += [f"batch {case['batch']}"] if case["batch"] != MODELS[case["model"]][1] else []
    words += changed(case, dict(slow_core="one slow core", slow="one slow card", accumulate="accumulation",
                                checkpoint="checkpointing", hook="{}", background="traffic beside"))
    return ", ".join(words)
