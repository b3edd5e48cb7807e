"""The steps that train_steps.py measures: what each is, its name, and its keys of a scenario. Needs no PyTorch."""

import typing
import zlib

COLUMNS = ["case", "group", "cluster.node", "cluster.nodes", "cluster.gpus_per_node", "workload.train.model",
           "workload.train.model.layers", "workload.train.model.sequence", "workload.train.global_batch",
           "workload.train.micro_batch", "workload.train.precision", "workload.train.fp8.scaling", "workload.train.optimizer",
           "workload.train.master_weights", "workload.train.kernels", "workload.train.fused_optimizer",
           "workload.train.clip_gradients", "workload.train.attention",
           "workload.train.native_attention", "workload.train.loss", "workload.train.recompute",
           "workload.train.memory_format", "workload.train.cast_weights", "workload.train.fp32_states",
           "workload.train.lora", "workload.train.fp32_adapters", "workload.train.quantisation", "plan.offload",
           "plan.execution", "plan.sync.gradient_precision",
           "measured.step_time", "measured.memory_per_gpu", "source"]


class Cases(list):
    """Cases, each a dict: model, batch, sequence (None for images), precision, execution; layers where it has fewer than
    its model; and what NAMED lists where it differs from a usual step. The most valuable come first, since a run may be
    shorter."""

    def add(self, model, batches, precisions, modes, sequences=(None,), **more):
        for batch in batches:
            for sequence in sequences:
                for precision in precisions:
                    for mode in modes:
                        case = dict(model=model, batch=batch, sequence=sequence, precision=precision, execution=mode, **more)
                        if case not in self:
                            self.append(case)


def designed_cases(quick, half="bf16", memory_gb=140, fp8=True):
    """Training from scratch. `half` is the 16-bit format that the GPU trains in: before Ampere there is no bf16;
    `memory_gb` is what it holds, and `fp8` whether it multiplies that."""
    cases = Cases()
    add = cases.add
    both, every = ("eager", "compiled"), ("eager", "compiled", "cuda_graph")
    if quick:
        add("lenet", (256,), ("fp32",), ("eager",))
        add("resnet-18-d2l", (256,), ("fp32",), ("eager",))
        add("resnet-50", (64,), (half,), ("eager",))
        add("bert-base", (16,), (half,), ("eager",), (128,))
        add("gpt2", (8,), (half,), both, (1024,))
        return cases
    large = memory_gb > 100
    of_8b, of_70b = dict(layers=16 if large else 12), dict(layers=4 if large else 2)
    add("gpt2", (16,), (half,), every, (1024,))
    add("llama3.2-1b", (2,), (half,), both, (2048,))
    add("resnet-50", (128,), (half,), ("eager", "cuda_graph"))
    add("llama3-8b", (1,), (half,), both, (4096,), **of_8b)
    add("llama3-70b", (1,), (half,), both, (4096,), **of_70b)
    add("mixtral-8x7b", (1,), (half,), ("eager",), (4096,), layers=2)
    add("qwen3-30b-a3b", (1,), (half,), ("eager",), (4096,), layers=4)
    if fp8:
        add("llama3-8b", (1,), ("fp8",), ("compiled",), (4096,), **of_8b)
        add("llama3-70b", (1,), ("fp8",), ("compiled",), (4096,), **of_70b)
    add("llama3-8b", (1,), (half,), ("eager",), (8192,), recompute="full", **of_8b)
    add("bert-base", (32,), (half,), ("eager",), (512,))
    add("gpt3-1.3b", (4,), (half,), ("eager",), (2048,))
    add("gpt2-large", (4,), (half,), ("eager",), (1024,))
    add("resnet-50", (256,), (half,), ("eager",))
    add("gpt2", (1,), (half,), ("eager", "cuda_graph"), (1024,))
    add("mixtral-8x7b", (4,), (half,), ("eager",), (1024,), layers=2)
    add("qwen3-30b-a3b", (2,), (half,), ("eager",), (4096,), layers=2)
    add("bert-base", (32,), (half,), ("eager", "cuda_graph"), (128,))
    add("lenet", (256,), ("fp32",), every)
    add("resnet-50", (32,), (half,), ("cuda_graph",))
    add("bert-base", (32,), ("fp32", "tf32"), ("eager",), (128,))
    add("resnet-50", (128,), ("tf32", "fp32"), ("eager",))
    if large:
        add("llama3.2-3b", (2,), (half,), ("eager",), (4096,))
    add("llama3.2-3b", (1,), (half,), ("eager",), (2048,))
    add("gpt2", (4,), (half,), ("eager", "cuda_graph"), (512,))
    add("resnet-18-d2l", (256,), ("fp32", half), ("eager", "cuda_graph"))
    add("gpt2-medium", (8,), (half,), ("eager", "cuda_graph"), (1024,))
    add("llama3.2-1b", (8 if large else 4,), (half,), ("eager",), (2048,))
    add("gpt3-1.3b", (8,), (half,), ("eager",), (2048,))
    add("gpt2", (16,), ("fp32", "tf32"), ("eager",), (512,))
    add("bert-base", (32,), (half,), ("compiled",), (512,))
    add("gpt2-medium", (8,), (half,), ("compiled",), (1024,))
    add("resnet-50", (32,), (half,), ("eager",))
    add("llama3-70b", (2,), (half,), ("eager",), (2048,), recompute="full", **of_70b)
    add("lenet", (1, 2048), ("fp32",), every)
    add("gpt2", (1,), (half,), ("compiled",), (1024,))
    add("llama3.2-1b", (1,), (half,), ("eager", "cuda_graph"), (2048,))
    add("resnet-50", (1,), ("tf32", half), ("eager",))
    add("resnet-50", (128,), (half,), ("compiled",))
    add("resnet-18-d2l", (64, 1024), ("fp32", "tf32"), ("eager",))
    add("gpt2-large", (8,), (half,), both, (1024,))
    add("gpt3-1.3b", (4,), (half,), ("compiled",), (2048,))
    return cases


def finetune_cases(half="bf16", memory_gb=140, at_hand=(), **_):
    """Steps of people who fine-tune. `at_hand`: the libraries of train_steps.LIBRARIES that Python finds."""
    cases = Cases()
    every = dict(lora=16, targets=["attention", "ffn"])
    nf4 = dict(every, quantisation="nf4", **({"library": "bitsandbytes"} if "bitsandbytes" in at_hand else {}))
    small, large, full = "llama3.2-1b", "llama3-8b", dict(recompute="full")

    def add(gigabytes, model, batch, sequence, mode="eager", **more):
        if gigabytes <= 0.9 * memory_gb:
            cases.add(model, (batch,), (half,), (mode,), (sequence,), **more)

    add(40, large, 1, 2048, **every)
    add(30, large, 1, 2048, **nf4)
    add(40, large, 2, 4096, **every, **full)
    add(30, large, 2, 4096, **nf4, **full)
    add(30, small, 4, 2048)
    add(30, small, 4, 2048, **full)
    add(30, small, 4, 2048, recompute="selective")
    for loss in ("chunked(8)", "fused", "fused_linear"):
        add(30, small, 4, 2048, loss=loss)
    add(30, small, 2, 2048, offload="optimizer")
    add(15, small, 4, 2048, **every)
    add(90, large, 1, 2048, weights="16 bits", **full)
    add(40, large, 1, 2048, "compiled", **every)
    add(30, small, 4, 2048, "compiled", **full)
    add(15, small, 4, 2048, lora=64, targets=["qkv"])
    add(40, "llama3.2-3b", 1, 2048, offload="optimizer", **full)
    add(20, small, 4, 2048, weights="16 bits")
    add(30, large, 1, 2048, "compiled", **nf4)
    add(15, "llama3.2-3b", 2, 2048, **nf4)
    if "liger" in at_hand:
        add(30, small, 4, 2048, loss="fused_linear", library="liger")
    if "deepspeed" in at_hand:
        add(30, small, 2, 2048, offload="optimizer", library="deepspeed")
    if "bitsandbytes" in at_hand:
        add(30, small, 4, 2048, optimizer="adamw_8bit", library="bitsandbytes")
    add(30, small, 4, 2048, "compiled", loss="chunked(8)")
    add(40, large, 1, 8192, **every, **full)
    return cases


def network_cases(half="bf16", **_):
    """Convolution networks by memory layout and number format."""
    cases = Cases()
    for model, batch in (("resnet-50", 128), ("vgg-16", 64), ("resnet-18-d2l", 256)):
        for precision in (half, "tf32", "fp32"):
            for layout in ("nhwc", "nchw"):
                cases.add(model, (batch,), (precision,), ("eager",), memory_format=layout)
    for layout in ("nhwc", "nchw"):
        cases.add("resnet-50", (32,), (half,), ("eager",), memory_format=layout)
    return cases


SETS = {"steps": designed_cases, "finetune": finetune_cases, "networks": network_cases}
GROUPED = ("recompute", "lora", "quantisation", "weights", "loss", "offload", "optimizer")
NAMED = (*GROUPED[:2], "targets", *GROUPED[2:], "library", "memory_format")


def name_of(case):
    words = [case["model"], f"l{case['layers']}" if "layers" in case else "", f"b{case['batch']}",
             f"s{case['sequence']}" if case["sequence"] else "", case["precision"], case["execution"]]
    said = {"full": "recompute", "selective": "recompute-selective", "16 bits": "16-bit-weights",
            "optimizer": "offload-optimizer"}
    for key in NAMED:
        value = case.get(key, "")
        word = f"lora{value}" if key == "lora" and value else "+".join(value) if key == "targets" else value
        words.append(said.get(word, word).replace("(", "").replace(")", ""))
    return "-".join(word for word in words if word)


MOST_LAYERS_AS_ONE = 12  # of which torch.compile makes one program in reasonable time

HALF = {"bf16": "bfloat16", "fp16": "float16"}  # by torch's names


class Llama(typing.NamedTuple):
    """A model of the family; scenarios/models says where its sizes are from."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    wide: int  # of the feed-forward; of an expert, where there are some
    tied: bool = False  # embeddings
    kv_heads: int = 8
    head: int = 128  # width
    experts: int = 1
    experts_per_token: int = 1


LLAMAS = {
    "llama3.2-1b": Llama(16, 2048, 32, 128256, 8192, tied=True, head=64),
    "llama3.2-3b": Llama(28, 3072, 24, 128256, 8192, tied=True),
    "llama3-8b": Llama(32, 4096, 32, 128256, 14336),
    "llama3-70b": Llama(80, 8192, 64, 128256, 28672),
    "mixtral-8x7b": Llama(32, 4096, 32, 32000, 14336, experts=8, experts_per_token=2),
    "qwen3-30b-a3b": Llama(48, 2048, 32, 151936, 768, kv_heads=4, experts=128, experts_per_token=8),
}
TRANSFORMERS = {  # layers, hidden, heads, vocabulary, longest sequence; scenarios/models says where from
    "bert-base": (12, 768, 12, 30522, 512),
    "gpt2": (12, 768, 12, 50257, 1024),
    "gpt2-medium": (24, 1024, 16, 50257, 1024),
    "gpt2-large": (36, 1280, 20, 50257, 1024),
    "gpt3-1.3b": (24, 2048, 16, 51200, 2048),
}


def layers_of(case):
    """Of a transformer."""
    return case.get("layers") or (LLAMAS.get(case["model"]) or TRANSFORMERS[case["model"]])[0]


def compiled_as_one(case):
    """Whether torch.compile makes one program of model and loss; of many layers it makes one for each block."""
    return case["execution"] == "compiled" and layers_of(case) <= MOST_LAYERS_AS_ONE


def cells_of(case):
    """The case as keys of a scenario."""
    transformer = case["model"] in TRANSFORMERS or case["model"] in LLAMAS
    half = case["precision"] in HALF or case["precision"] == "fp8"
    flash = case["precision"] in ("bf16", "fp8")  # PyTorch's flash attention begins with Ampere, as bf16 does
    narrow = transformer and ("weights" in case or "offload" in case)  # weights and gradients of 16 bits
    cells = {
        "cluster.gpus_per_node": 1, "workload.train.model": case["model"],
        "workload.train.model.layers": case.get("layers", ""), "workload.train.recompute": case.get("recompute", ""),
        "workload.train.model.sequence": case["sequence"] or "", "workload.train.global_batch": case["batch"],
        "workload.train.micro_batch": case["batch"], "workload.train.precision": case["precision"],
        "workload.train.fp8.scaling": "current" if case["precision"] == "fp8" else "",
        "workload.train.optimizer": case.get("optimizer", "adamw") if transformer else "momentum",
        "workload.train.master_weights": str("weights" not in case).lower() if half else "",
        "workload.train.memory_format": "" if transformer else memory_format_of(case),
        "workload.train.cast_weights": "false" if narrow or "lora" in case else "",
        "workload.train.fp32_states": "false" if "weights" in case else "",
        "workload.train.kernels": "plain" if transformer else "",
        "workload.train.fused_optimizer": "true" if transformer else "",
        "workload.train.clip_gradients": "false" if transformer else "",
        "workload.train.loss": case.get("loss") or ("fused" if transformer and compiled_as_one(case) else ""),
        "workload.train.attention": ("flash" if flash else "memory_efficient") if transformer else "",
        "plan.execution": case["execution"],
        "plan.sync.gradient_precision": (case["precision"] if narrow else "fp32") if half else "",
        "plan.offload": case.get("offload", ""),
    }
    if "lora" in case:
        cells["workload.train.lora"] = f"{{ rank: {case['lora']}, targets: [{', '.join(case['targets'])}] }}"
        cells["workload.train.fp32_adapters"] = "true"
    if "quantisation" in case:
        cells["workload.train.quantisation"] = f"{{ weights: {case['quantisation']} }}"
    return {key: str(value) for key, value in cells.items() if value != ""}


def memory_format_of(case):
    """Images are channels last where tensor cores want them so, if the case says nothing."""
    return case.get("memory_format") or ("nhwc" if case["precision"] in HALF else "nchw")


def held_out(name):
    """Whether no fit may see the step: about a quarter, by the name alone."""
    return zlib.crc32(name.encode()) % 4 == 0
