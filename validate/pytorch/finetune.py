"""Additions of fine-tuning to a step of plain PyTorch: LoRA adapters, frozen weights in 4 bits, losses in chunks, and an
optimizer on the CPU. bitsandbytes, DeepSpeed and Liger are used where the case says so."""

import torch
from torch import nn
from torch.nn import functional

import models

TARGETS = {"qkv": ("q", "k", "v"), "attention": ("q", "k", "v", "out"), "ffn": ("gate", "up", "down")}
LORA_SCALE = 2.0  # lora_alpha over the rank
# NF4's levels: QLoRA (arXiv 2305.14314), appendix E.
LEVELS = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
          -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
          0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
BLOCK, OUTER_BLOCK = 64, 256  # weights that share a scale, scales that share one of theirs


def compiled(function, device):
    """The function as fused kernels, on GPUs with a PyTorch that compiles."""
    return torch.compile(function) if device.type == "cuda" and hasattr(torch, "compile") else function


def quantised(weight):
    """NF4 with double quantisation: two codes a byte, scales in 8 bits, scales of these, and their mean."""
    blocks = weight.detach().float().reshape(-1, BLOCK)
    levels = torch.tensor(LEVELS, device=weight.device)
    largest = blocks.abs().amax(1).clamp(min=1e-12)
    codes = torch.bucketize(blocks / largest.unsqueeze(1), (levels[1:] + levels[:-1]) / 2).to(torch.uint8).flatten()
    mean = largest.mean()
    offsets = (largest - mean).reshape(-1, OUTER_BLOCK)
    steps = offsets.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (codes[0::2] << 4) | codes[1::2], (offsets / steps).round().to(torch.int8), steps, mean, levels


def dequantised(packed, scales, steps, mean, levels):
    """The weights in bf16, flat."""
    largest = (scales.float() * steps + mean).reshape(-1, 1)
    codes = torch.stack((packed >> 4, packed & 15), 1)
    return (levels[codes.long()].reshape(-1, BLOCK) * largest).to(torch.bfloat16)


dequantised_by_one_kernel = torch.compile(dequantised, dynamic=False) if hasattr(torch, "compile") else dequantised


def dequantise(packed, *scales):
    return (dequantised_by_one_kernel if packed.is_cuda else dequantised)(packed, *scales)


class Nf4Product(torch.autograd.Function):
    """x w^T; the frozen w is dequantised in each pass."""

    @staticmethod
    def forward(ctx, x, shape, *parts):
        ctx.shape, ctx.kind = shape, x.dtype
        ctx.save_for_backward(*parts)
        return functional.linear(x.to(torch.bfloat16), dequantise(*parts).view(shape))

    @staticmethod
    def backward(ctx, dy):
        weight = dequantise(*ctx.saved_tensors).view(ctx.shape)
        return (dy.to(torch.bfloat16) @ weight).to(ctx.kind), *[None] * (1 + len(ctx.saved_tensors))


class Nf4Linear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        for index, part in enumerate(quantised(linear.weight)):
            self.register_buffer(f"part{index}", part)

    def forward(self, x):
        return Nf4Product.apply(x, (self.out_features, self.in_features), *self.buffers())


def in_4_bits(linear, library):
    if library != "bitsandbytes":
        return Nf4Linear(linear)
    import bitsandbytes
    layer = bitsandbytes.nn.Linear4bit(linear.in_features, linear.out_features, bias=False, compute_dtype=torch.bfloat16,
                                       quant_type="nf4", device="cpu")
    layer.load_state_dict({"weight": linear.weight.detach().cpu()})
    return layer.to(linear.weight.device)  # which quantises


class LoraLinear(nn.Module):
    """A frozen linear layer plus its adapter in fp32, as PEFT computes it."""

    def __init__(self, linear, rank, device):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(0.02 * torch.randn(rank, linear.in_features, device=device, dtype=torch.float32))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank, device=device, dtype=torch.float32))

    def forward(self, x):
        return self.linear(x) + functional.linear(functional.linear(x, self.down), self.up) * LORA_SCALE


def adapt(model, case):
    """Freezes the model; its blocks get adapters, and weights in 4 bits where the case says so."""
    model.requires_grad_(False)
    targets = {name for target in case["targets"] for name in TARGETS[target]}
    for block in model.blocks:
        for parent in list(block.modules()):
            for name, part in list(parent.named_children()):
                if not isinstance(part, nn.Linear):
                    continue
                frozen = in_4_bits(part, case.get("library")) if "quantisation" in case else part
                if name in targets:
                    frozen = LoraLinear(frozen, case["lora"], part.weight.device)
                setattr(parent, name, frozen)


class LossInChunks(torch.autograd.Function):
    """Output layer, cross-entropy and the gradients of both for one part of the tokens after another."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, chunks, cross_entropy):
        rows, wanted = hidden.detach().reshape(-1, hidden.shape[-1]), targets.flatten()
        matrix = weight.detach().requires_grad_(ctx.needs_input_grad[1])
        total, of_rows, of_weight = 0.0, [], None
        for part, right in zip(rows.chunk(chunks), wanted.chunk(chunks)):
            with torch.enable_grad():
                part.requires_grad_()
                loss = cross_entropy(functional.linear(part, matrix), right) * (len(right) / len(wanted))
            gradients = torch.autograd.grad(loss, (part, matrix) if matrix.requires_grad else (part,))
            total = total + loss.detach()
            of_rows.append(gradients[0])
            if matrix.requires_grad:
                of_weight = gradients[1] if of_weight is None else of_weight.add_(gradients[1])
        ctx.save_for_backward(torch.cat(of_rows).view(hidden.shape), of_weight)
        return total

    @staticmethod
    def backward(ctx, dy):
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden * dy, None if of_weight is None else of_weight * dy, None, None, None


def loss_of(case, shape, device):
    """The loss that the case names, like models.mean_loss."""
    name = case.get("loss", "eager")
    if name == "eager":
        return models.mean_loss
    plain = functional.cross_entropy
    if name == "fused":
        fused = compiled(plain, device)
        return lambda hidden, weight, targets: fused(functional.linear(hidden, weight).flatten(0, 1), targets.flatten())
    if name == "fused_linear" and case.get("library") == "liger":
        from liger_kernel.transformers.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyLoss
        liger = LigerFusedLinearCrossEntropyLoss()
        return lambda hidden, weight, targets: liger(weight, hidden.flatten(0, 1), targets.flatten())
    if name == "fused_linear":  # Liger's logits take about as much memory as its input
        chunks, cross_entropy = -(-shape.vocabulary // shape.hidden), compiled(plain, device)
    else:
        chunks, cross_entropy = int(name[len("chunked("):-1]), plain
    return lambda hidden, weight, targets: LossInChunks.apply(hidden, weight, targets, chunks, cross_entropy)


def adamw(parameters, **options):
    """AdamW, without the options that this PyTorch does not have there."""
    parameters = [each for each in parameters if each.requires_grad]
    try:
        return torch.optim.AdamW(parameters, lr=1e-5, **options)
    except (TypeError, RuntimeError):
        return torch.optim.AdamW(parameters, lr=1e-5)


class OffloadedAdamW:
    """AdamW with fp32 weights and states in CPU memory: gradients are copied there, 16-bit weights back."""

    def __init__(self, parameters, library):
        self.parameters = list(parameters)
        self.masters = [each.detach().float().cpu().requires_grad_() for each in self.parameters]
        self.buffers = [torch.empty(each.shape, dtype=each.dtype, pin_memory=each.is_cuda) for each in self.parameters]
        if library == "deepspeed":
            from deepspeed.ops.adam import DeepSpeedCPUAdam
            self.inner = DeepSpeedCPUAdam(self.masters, lr=1e-5)
        else:
            self.inner = adamw(self.masters, fused=True)

    def zero_grad(self, set_to_none=True):
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self):
        for each, buffer in zip(self.parameters, self.buffers):
            buffer.copy_(each.grad, non_blocking=True)
        if self.parameters[0].is_cuda:
            torch.cuda.synchronize()
        for master, buffer in zip(self.masters, self.buffers):
            master.grad = buffer.float()
        self.inner.step()
        for each, master, buffer in zip(self.parameters, self.masters, self.buffers):
            buffer.copy_(master)
            each.copy_(buffer, non_blocking=True)


def optimizer_of(case, model):
    if "offload" in case:
        return OffloadedAdamW(model.parameters(), case.get("library"))
    if case.get("optimizer") == "adamw_8bit":
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit([each for each in model.parameters() if each.requires_grad], lr=1e-5)
    graphed = case["execution"] == "cuda_graph"
    return adamw(model.parameters(), fused=True, **(dict(capturable=True) if graphed else {}))
