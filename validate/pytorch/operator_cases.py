"""The operators that operators.py measures without a table (--set): rows of `foretrain validate --cases`, and PyTorch's
functions for them. A row's keys without a dot are not the table's: function and implementation, copies, step."""

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None  # operators.py says so

KEY = "workload.operator."
FORMATS = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3fn"}
TINY = 64  # rows, columns and the like of a dry run, at most


class Unmeasured(Exception):
    pass


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def row(name, group, **keys):
    """A row; its keys of an operator without the dot's left side."""
    return {"case": name, "group": group,
            **{(key if key in HIDDEN else KEY + key): value if key in HIDDEN else str(value) for key, value in keys.items()}}


HIDDEN = ("function", "implementation", "copies", "step")

# --- Norms, softmax, cross-entropy, Adam ---------------------------------------------------------------------------------


def written_rms_norm(x, weight):
    """As models.RmsNorm, and so Llama's own code, has it."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def kernels_of_written_rms_norm(rows, columns):
    """Its kernels over all elements as tasks of a scenario: bytes by inputs and outputs of one format."""
    kernels = (("cast", "elementwise", "bf16", 1, 2), ("square", "elementwise", "fp32", 1, 1),
               ("mean", "reduction", "fp32", 1, None), ("scale", "elementwise", "fp32", 1, 1),
               ("narrow", "elementwise", "bf16", 2, 1), ("weight", "elementwise", "bf16", 1, 1))
    tasks = [f"{{ id: {name}, on: gpu0, run: {{ {kind}: {{ elements: {rows * columns}, precision: {precision}"
             + (f", inputs: {inputs}, outputs: {outputs}" if outputs else "") + " } } }"
             for name, kind, precision, inputs, outputs in kernels]
    return f"[{', '.join(tasks)}]"


FUNCTIONS = {
    "layer_norm": lambda x, weight, bias: functional.layer_norm(x, x.shape[-1:], weight, bias),
    "rms_norm": lambda x, weight: functional.rms_norm(x, x.shape[-1:], weight, 1e-5),
    "written_rms_norm": written_rms_norm,
    "softmax": lambda x: functional.softmax(x, -1),
    "cross_entropy": lambda x, targets: functional.cross_entropy(x, targets),
}


def operator_rows():
    """The most valuable first: forward and backward as called, then compiled."""
    rows = []
    sizes = {"layer_norm": ((8192, 4096), (32768, 1024), (2048, 768)), "softmax": ((65536, 1024), (16384, 4096)),
             "cross_entropy": ((4096, 128256), (8192, 50257), (2048, 32000))}
    sizes["rms_norm"] = sizes["layer_norm"]
    for implementation in ("eager", "compiled"):
        for function in ("layer_norm", "rms_norm", "softmax", "cross_entropy"):
            for count, columns in sizes[function]:
                for precision in ("bf16", "fp32") if implementation == "eager" else ("bf16",):
                    for direction in ("forward", "backward"):
                        rows.append(row(
                            f"{function}-{implementation}-{count}x{columns}-{precision}-{direction}",
                            f"{function}-{implementation}", kind=function.replace("rms", "layer"), rows=count,
                            columns=columns, precision=precision, function=function, implementation=implementation,
                            **{"pass": direction}))
        for count, columns in sizes["rms_norm"] if implementation == "eager" else ():
            rows.append({"case": f"rms_norm-written-{count}x{columns}-bf16", "group": "rms_norm-written",
                         "function": "written_rms_norm", "implementation": "eager", KEY + "rows": count,
                         KEY + "columns": columns, KEY + "precision": "bf16",
                         "workload.tasks": kernels_of_written_rms_norm(count, columns)})
        for implementation_of_adam in ("fused", "foreach", "loop") if implementation == "eager" else ():
            for parameters, tensors in ((100_000_000, 100), (1_000_000_000, 150), (10_000_000, 200)):
                rows.append(row(f"adamw-{implementation_of_adam}-{parameters}-in-{tensors}", f"adamw-{implementation_of_adam}",
                                kind="optimizer", parameters=parameters, tensors=tensors, algorithm="adamw",
                                fused=str(implementation_of_adam == "fused").lower(), precision="fp32",
                                function="adamw", implementation=implementation_of_adam))
    return rows


def tensor_launches(row, count):
    """Functions that each launch the row's operator once, with operands of their own."""
    name = row["function"]
    if (name, row["implementation"]) == ("rms_norm", "compiled"):
        name = "written_rms_norm"
    if name == "rms_norm" and not hasattr(functional, "rms_norm"):
        raise Unmeasured("rms_norm begins with PyTorch 2.4")
    compiles = row["implementation"] == "compiled" and device() == "cuda"
    if compiles:
        if not hasattr(torch, "compile"):
            raise Unmeasured("torch.compile begins with PyTorch 2.0")
        import torch._dynamo as dynamo
        from torch._functorch import config
        config.donated_buffer = False  # gradients are computed again and again
        dynamo.reset()  # more sizes than it compiles of one function
    function = torch.compile(FUNCTIONS[name], dynamic=False) if compiles else FUNCTIONS[name]
    rows, columns = (int(row[KEY + key]) for key in ("rows", "columns"))
    kind, backward = getattr(torch, FORMATS[row[KEY + "precision"]]), row.get(KEY + "pass") == "backward"

    def one():
        x = torch.randn(rows, columns, device=device(), dtype=kind, requires_grad=backward)
        weights = [torch.ones(columns, device=device(), dtype=kind, requires_grad=backward)
                   for _ in range({"layer_norm": 2, "softmax": 0, "cross_entropy": 0}.get(name, 1))]
        targets = [torch.randint(0, columns, (rows,), device=device())] if name == "cross_entropy" else []
        if not backward:
            return lambda: function(x, *weights, *targets)
        y = function(x, *weights, *targets)
        dy = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (x, *weights), dy, retain_graph=True)

    return [one() for _ in range(count)]


def adamw_launches(row, where):
    """One function: an AdamW step over tensors of equal size."""
    parameters, tensors = int(row[KEY + "parameters"]), int(row[KEY + "tensors"])
    weights = [torch.randn(parameters // tensors, device=where).requires_grad_() for _ in range(tensors)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    how = row["implementation"]
    if how == "deepspeed":
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        return [DeepSpeedCPUAdam(weights, lr=1e-5).step]
    options = dict(fused=True) if how == "fused" else dict(foreach=how == "foreach")
    if where == "cuda":
        options["capturable"] = True
    try:
        return [torch.optim.AdamW(weights, lr=1e-5, **options).step]
    except (TypeError, RuntimeError) as error:
        raise Unmeasured(f"no {how} AdamW on {where} in PyTorch {torch.__version__}") from error


# --- Products in block-scaled formats ------------------------------------------------------------------------------------


def block_scaled_rows():
    return [row(f"{precision}-{m}x{n}x{k}", precision, kind="matmul", m=m, n=n, k=k, precision=precision, transpose_b="true",
                cast="false")
            for m, n, k in ((8192, 8192, 8192), (8192, 14336, 4096), (8192, 4096, 14336), (4096, 4096, 4096), (2048, 28672, 8192))
            for precision in ("mxfp8", "nvfp4")]


def block_scaled_launches(row, count):
    """Products by torch._scaled_mm; scales are ones, whose order in memory then does not matter."""
    precision = row[KEY + "precision"]
    if device() == "cpu" or torch.cuda.get_device_capability() < (10, 0):
        raise Unmeasured(f"no GPU that multiplies {precision} (Blackwell)")
    if not hasattr(torch, "float8_e8m0fnu" if precision == "mxfp8" else "float4_e2m1fn_x2"):
        raise Unmeasured(f"{precision} begins with PyTorch 2.7 or 2.8")
    m, n, k = (int(row[KEY + key]) for key in "mnk")
    block, kind = (32, torch.float8_e8m0fnu) if precision == "mxfp8" else (16, torch.float8_e4m3fn)

    def operand(rows):
        if precision == "mxfp8":
            values = torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn)
        else:
            values = torch.randint(0, 256, (rows, k // 2), device="cuda", dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        # cuBLAS pads scales to tiles of 128 rows and 4 blocks.
        return values, torch.ones(-(-rows // 128) * 128 * -(-k // block // 4) * 4, device="cuda").to(kind)

    def one():
        (a, of_a), (b, of_b) = operand(m), operand(n)
        return lambda: torch._scaled_mm(a, b.t(), scale_a=of_a, scale_b=of_b, out_dtype=torch.bfloat16)

    return [one() for _ in range(count)]


# --- Copies between host and GPU -----------------------------------------------------------------------------------------

ENDS = {"h2d": ("cpu", "gpu0"), "d2h": ("gpu0", "cpu")}
PRODUCT = 4096  # rows and columns of the GEMM beside copies


def copy_rows():
    """Copies one way, both ways on two streams, and beside GEMMs; each row is some of them in a row."""
    rows = []
    for megabytes, repeat in ((64, 10), (512, 4), (1, 50)):
        for pinned in (True, False):
            for ways in (("h2d",), ("d2h",)) + ((("h2d", "d2h"), ("h2d", "gemm"), ("d2h", "gemm")) if pinned else ()):
                tasks = []
                for way in ways:
                    if way == "gemm":
                        run = f"matmul: {{ m: {PRODUCT}, n: {PRODUCT}, k: {PRODUCT}, precision: bf16 }}"
                    else:
                        source, target = ENDS[way]
                        run = f"copy: {{ from: {source}, to: {target}, size: {megabytes} MB, pinned: {str(pinned).lower()} }}"
                    on = "gpu0" if way == "gemm" else f"gpu0:{way}"
                    tasks.append(f"{{ id: {way}, on: '{on}', run: {{ {run}, repeat: {repeat} }} }}")
                group = "copy-" + "+".join(ways) + ("" if pinned else "-pageable")
                rows.append({"case": f"{group}-{megabytes}mb", "group": group, "workload.tasks": f"[{', '.join(tasks)}]",
                             "copies": (ways, megabytes, repeat, pinned)})
    return rows


def transfer(row, tiny):
    """A function that does all of the row and waits for it."""
    ways, megabytes, repeat, pinned = row["copies"]
    size, gpu = (1000 if tiny else megabytes * 1_000_000), device() == "cuda"
    lanes = []
    for way in ways:
        if way == "gemm":
            a = torch.randn(TINY if tiny else PRODUCT, TINY if tiny else PRODUCT, device=device(), dtype=torch.bfloat16)
            lanes.append((lambda a=a: a @ a))
            continue
        host = torch.zeros(size, dtype=torch.uint8, pin_memory=pinned and gpu)
        there = torch.zeros(size, dtype=torch.uint8, device=device())
        source, target = (host, there) if way == "h2d" else (there, host)
        lanes.append(lambda source=source, target=target: target.copy_(source, non_blocking=pinned))
    streams = [torch.cuda.Stream() if gpu else None for _ in lanes]

    def run():
        for _ in range(repeat):
            for lane, stream in zip(lanes, streams):
                with torch.cuda.stream(stream):
                    lane()
        if gpu:
            torch.cuda.synchronize()

    return run


def cpu_adam_rows(at_hand):
    """AdamW on the CPU, which foretrain predicts within a step alone (plan.offload): records, no rows of a table."""
    return [row(f"cpu-adamw-{how}-{parameters}", "cpu-adamw", parameters=parameters, tensors=100, implementation=how,
                function="adamw", step=True)
            for parameters in (100_000_000, 400_000_000) for how in ("fused", "foreach", "deepspeed")
            if how != "deepspeed" or "deepspeed" in at_hand]


def shrunk(row):
    """The row as a dry run does it."""
    small = {key: min(int(row[KEY + key]), TINY) for key in ("rows", "columns") if KEY + key in row}
    if KEY + "parameters" in row:
        small.update(parameters=1000, tensors=10)
    return dict(row, **{KEY + key: value for key, value in small.items()})


SETS = {"operators": operator_rows, "block_scaled": block_scaled_rows, "copies": copy_rows}
