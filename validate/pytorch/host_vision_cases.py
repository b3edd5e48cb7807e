"""What host_steps.py measures of vision–language models, and its rows of a table."""

from host_cases import USUAL, mapping
from host_parallel_cases import SHARES

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


def vision_cases():
    """Batches, images, and what is trained; then replicas behind cards of several rates."""
    cases = []

    def add(models, rates=(1000,), workers=1, batch=1, **rest):
        share, hosts = SHARES[workers]
        for model in models.split():
            for rate in rates:
                case = dict(USUAL, kind="vision", model=model, batch=batch, workers=workers, rate=rate, share=share,
                            hosts=hosts, **rest)
                case["name"] = vision_name_of(case)
                cases.append(case)

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
    return cases


def vision_name_of(case):
    words = [case["model"], f"b{case['batch']}"]
    words += ["alone"] if case["workers"] == 1 else [f"ring{case['workers']}", str(case["rate"])]
    words += [f"{word}{case[word]}" for word in ("images", "text", "accumulate") if case[word] != USUAL[word]]
    words += ["frozen"] + case["freeze"] if case["freeze"] else []
    words += [f"lora{case['lora']}"] if case["lora"] else []
    return "-".join(words + ["checkpoint"] * case["checkpoint"])


def model_cell(shape):
    language = dict(shape["language"], kv_heads=shape["language"]["heads"])
    return mapping(dict(family="vision_language", vision=mapping(dict(family="vit", **shape["vision"])),
                        projector=mapping(dict(kind="mlp", **shape["projector"])),
                        language=mapping(dict(preset="llama2-7b", **language))))


def vision_cells(run, speed):
    """`speed` of a whole core."""
    case = dict(USUAL, **run)
    cells = {"case": "hosts-" + case["name"], "group": "hosts-vision", "base": "parallel-hosts",
             "cluster.nodes": case["workers"], "cluster.network.nic_bandwidth": f"{case['rate']} Mbit/s",
             "workload.train.model": model_cell(VISION[case["model"]]), "workload.train.micro_batch": case["batch"],
             "workload.train.data": mapping(dict(images=case["images"], text=case["text"])),
             "workload.train.global_batch": case["batch"] * case["accumulate"] * case["workers"],
             "plan.tensor": 1, "plan.data": case["workers"],
             "replay.model": case["model"], "replay.way": vision_way_of(case), "replay.core": case["share"]}
    share = min(1.0, round(case["share"] * speed, 3))
    if share != 1:
        cells["cluster.node.gpu.processor.share"] = share
    if case["freeze"]:
        cells["workload.train.freeze"] = f"[{', '.join(case['freeze'])}]"
    if case["lora"]:
        cells["workload.train.lora"] = mapping(dict(rank=case["lora"], targets="[attention, ffn]"))
    if case["checkpoint"]:
        cells["workload.train.recompute"] = "full"
    return cells


def vision_way_of(case):
    words = ["one process" if case["workers"] == 1 else "ring"]
    words += [f"{case[word]} {said}" for word, said in (("images", "images"), ("text", "tokens of text"))
              if case[word] != USUAL[word]]
    words += [f"frozen {' and '.join(case['freeze'])}"] if case["freeze"] else []
    for word, said in (("adapters", case["lora"]), ("accumulation", case["accumulate"] > 1),
                       ("checkpointing", case["checkpoint"])):
        words += [word] if said else []
    return ", ".join(words)
