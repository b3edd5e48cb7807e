"""The models of scenarios/models in plain PyTorch, shape for shape."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


PERCEPTRONS = {"mlp-d2l": (512, 256, 128, 2),  # Dive into Deep Learning, Compilers and Interpreters
               "mlp-wide": (784, 2048, 2048, 10),  # many weights, little work
               "mlp-deep": (256,) + (512,) * 11 + (10,)}


def attend(q, k, v, causal, dropout):
    """Attention; PyTorch before 2.0 has no function for it."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=dropout)
    scores = (q @ k.transpose(-2, -1)) * (1.0 / q.shape[-1]**0.5)
    if causal:
        length = q.shape[-2]
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    return functional.dropout(torch.softmax(scores, -1), dropout) @ v


VGG_16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # channels and convolutions before each pooling


def build_network(name, side=224):
    """One of PERCEPTRONS, lenet, resnet-18-d2l, resnet-50 or vgg-16; `side`: of the images of the last two."""

    def conv(i, o, k, stride=1, pad=0, bias=True):
        return nn.Conv2d(i, o, k, stride=stride, padding=pad, bias=bias)

    class Residual(nn.Module):
        def __init__(self, body, shortcut):
            super().__init__()
            self.body, self.shortcut, self.relu = body, shortcut, nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.body(x) + self.shortcut(x))

    if name in PERCEPTRONS:
        widths = PERCEPTRONS[name]
        layers = [nn.Linear(widths[0], widths[1])]
        for i, o in zip(widths[1:], widths[2:]):
            layers += [nn.ReLU(), nn.Linear(i, o)]
        return nn.Sequential(*layers)
    if name == "lenet":  # Dive into Deep Learning, Training on Multiple GPUs
        return nn.Sequential(conv(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2, 2), conv(20, 50, 5), nn.ReLU(),
                             nn.AvgPool2d(2, 2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))
    if name == "vgg-16":
        layers, inputs = [], 3
        for width, count in VGG_16:
            for _ in range(count):
                layers += [conv(inputs, width, 3, pad=1), nn.ReLU(inplace=True)]
                inputs = width
            layers.append(nn.MaxPool2d(2, 2))
        layers.append(nn.Flatten())
        for i, o in ((512 * (side // 32) ** 2, 4096), (4096, 4096)):
            layers += [nn.Linear(i, o), nn.ReLU(inplace=True), nn.Dropout(0.5)]
        return nn.Sequential(*layers, nn.Linear(4096, 1000))
    if name == "resnet-18-d2l":  # Dive into Deep Learning: 3x3 stem, biases, no batch norm in the shortcuts

        def basic(i, o, stride):
            body = nn.Sequential(conv(i, o, 3, stride, 1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                                 conv(o, o, 3, 1, 1), nn.BatchNorm2d(o))
            return Residual(body, conv(i, o, 1, stride) if stride > 1 or i != o else nn.Identity())

        layers = [conv(1, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), basic(64, 64, 1), basic(64, 64, 1)]
        for i, o in ((64, 128), (128, 256), (256, 512)):
            layers += [basic(i, o, 2), basic(o, o, 1)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    def bottleneck(i, width, stride):  # resnet-50 v1.5: the stride is in the 3x3 convolution
        o = 4 * width
        body = nn.Sequential(conv(i, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                             conv(width, width, 3, stride, 1, False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                             conv(width, o, 1, bias=False), nn.BatchNorm2d(o))
        if stride == 1 and i == o:
            return Residual(body, nn.Identity())
        return Residual(body, nn.Sequential(conv(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)))

    layers = [conv(3, 64, 7, 2, 3, False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


MASKED_SHARE = 0.15  # of BERT's tokens, whose logits alone are computed


def build_transformer(shape, bert):
    """GPT-2 (norms first), or BERT with its masked-token head.

    `shape`: layers, hidden, heads, vocabulary, positions.
    """
    layers, hidden, heads, vocabulary, longest = shape

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            if bert:
                self.q, self.k, self.v = (nn.Linear(hidden, hidden) for _ in range(3))
            else:
                self.qkv = nn.Linear(hidden, 3 * hidden)
            self.out = nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
            self.drop1, self.drop2 = nn.Dropout(0.1), nn.Dropout(0.1)

        def attention(self, x):
            b, s, _ = x.shape
            q, k, v = (self.q(x), self.k(x), self.v(x)) if bert else self.qkv(x).split(hidden, dim=2)
            q, k, v = (t.view(b, s, heads, hidden // heads).transpose(1, 2) for t in (q, k, v))
            y = attend(q, k, v, causal=not bert, dropout=0.1 if self.training else 0.0)
            return self.drop1(self.out(y.transpose(1, 2).reshape(b, s, hidden)))

        def mlp(self, x):
            return self.drop2(self.down(functional.gelu(self.up(x))))

        def forward(self, x):
            if bert:
                x = self.norm1(x + self.attention(x))
                return self.norm2(x + self.mlp(x))
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(longest, hidden)
            self.drop = nn.Dropout(0.1)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(hidden)
            if bert:
                self.segments, self.transform = nn.Embedding(2, hidden), nn.Linear(hidden, hidden)
                self.pooler = nn.Linear(hidden, hidden)
                self.embedding_norm = nn.LayerNorm(hidden)
                self.bias = nn.Parameter(torch.zeros(vocabulary))

        def forward(self, tokens, targets):
            x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
            if bert:
                x = self.embedding_norm(x + self.segments(torch.zeros_like(tokens)))
            x = self.drop(x)
            for block in self.blocks:
                x = block(x)
            if not bert:
                logits = functional.linear(self.norm(x), self.tokens.weight)
                return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            masked = max(round(MASKED_SHARE * tokens.numel()), 1)
            rows = self.norm(functional.gelu(self.transform(x.flatten(0, 1)[:masked])))
            logits = functional.linear(rows, self.tokens.weight, self.bias)
            pooled = torch.tanh(self.pooler(x[:, 0])).float().pow(2).mean()
            return functional.cross_entropy(logits, targets.flatten()[:masked]) + pooled

    model = Transformer()
    for module in model.modules():  # small weights: the loss stays finite over all steps
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
    return model


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * scaled.to(x.dtype)


def rotated(x, cosine, sine):
    left, right = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-right, left), dim=-1) * sine


class Fp8Product(torch.autograd.Function):
    """x w^T with both in fp8, one scale each, and so its gradients: what torchao calls dynamic scaling by tensors."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        (x8, x_scale), (w8, w_scale) = to_fp8(x), to_fp8(weight)
        return torch._scaled_mm(x8, w8.t(), x_scale, w_scale, out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy8, dy_scale = to_fp8(dy, torch.float8_e5m2)
        (x8, x_scale), (w8, w_scale) = to_fp8(x), to_fp8(weight)
        # Tensor cores multiply fp8 along rows alone: each product has copies transposed.
        dx = torch._scaled_mm(dy8, w8.t().contiguous().t(), dy_scale, w_scale, out_dtype=torch.bfloat16)
        dw = torch._scaled_mm(dy8.t().contiguous(), x8.t().contiguous().t(), dy_scale, x_scale, out_dtype=torch.bfloat16)
        return dx, dw.to(weight.dtype)


def to_fp8(x, kind=None):
    """x in fp8 (e4m3), and what it is to be multiplied by."""
    kind = kind or torch.float8_e4m3fn  # not of PyTorch before 2.1
    scale = torch.finfo(kind).max / x.abs().max().float().clamp(min=1e-12)
    return (x.float() * scale).clamp(torch.finfo(kind).min, torch.finfo(kind).max).to(kind), scale.reciprocal()


class Fp8Linear(nn.Linear):
    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1]).to(torch.bfloat16)
        return Fp8Product.apply(rows, self.weight).view(*x.shape[:-1], -1)


def grouped_product(x, weights, ends):
    """Rows of x, which stand expert by expert and end at `ends`, each times its expert's matrix of `weights` (experts,
    inputs, outputs)."""
    if x.is_cuda:
        return torch._grouped_mm(x, weights, offs=ends)
    begins = [0, *ends.tolist()]
    return torch.cat([x[begin:end] @ w for begin, end, w in zip(begins, begins[1:], weights)])


class Experts(nn.Module):
    """A mixture of gated experts: a router, copies of tokens in the order of experts, grouped products, and their sum."""

    def __init__(self, shape):
        super().__init__()
        self.per_token, self.count = shape.experts_per_token, shape.experts
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.gate, self.up = (nn.Parameter(0.02 * torch.randn(shape.experts, shape.hidden, shape.wide)) for _ in range(2))
        self.down = nn.Parameter(0.02 * torch.randn(shape.experts, shape.wide, shape.hidden))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        share, chosen = torch.softmax(self.router(tokens), dim=-1, dtype=torch.float32).topk(self.per_token, dim=-1)
        share = share / share.sum(dim=-1, keepdim=True)
        experts, order = chosen.flatten().sort(stable=True)
        ends = torch.searchsorted(experts, torch.arange(self.count, device=x.device), right=True).to(torch.int32)
        source = order // self.per_token
        kind = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else tokens.dtype
        rows = tokens.to(kind)[source]
        gate, up, down = (weights.to(kind) for weights in (self.gate, self.up, self.down))
        y = functional.silu(grouped_product(rows, gate, ends)) * grouped_product(rows, up, ends)
        y = grouped_product(y, down, ends) * share.flatten()[order].unsqueeze(1).to(kind)
        return torch.zeros_like(tokens, dtype=kind).index_add(0, source, y).view(x.shape)


def mean_loss(hidden, weight, targets):
    """Cross-entropy of an output layer over all tokens, in fp32 as trainers have it."""
    return functional.cross_entropy(functional.linear(hidden, weight).flatten(0, 1).float(), targets.flatten())


def build_llama(shape, sequence, recompute="none", fp8=False, loss=mean_loss):
    """Llama: norms by root mean squares, rotary positions, few heads of keys and values, a gated feed-forward or experts.

    `shape`: step_cases.Llama. `recompute`: in the backward pass blocks run again from their input (full), or only the
    core of attention does (selective). `fp8`: the GEMMs of blocks are in fp8, except the router's and the experts'.
    `loss`: like mean_loss.
    """
    hidden, heads, kv_heads, head = shape.hidden, shape.heads, shape.kv_heads, shape.head
    linear = Fp8Linear if fp8 else nn.Linear

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up = (linear(hidden, shape.wide, bias=False) for _ in range(2))
            self.down = linear(shape.wide, hidden, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = RmsNorm(hidden), RmsNorm(hidden)
            self.q, self.out = linear(hidden, heads * head, bias=False), linear(heads * head, hidden, bias=False)
            self.k, self.v = (linear(hidden, kv_heads * head, bias=False) for _ in range(2))
            self.mlp = Experts(shape) if shape.experts > 1 else FeedForward()

        def attention(self, x, cosine, sine):
            b, s, _ = x.shape
            q = self.q(x).view(b, s, heads, head).transpose(1, 2)
            k, v = (part(x).view(b, s, kv_heads, head).transpose(1, 2) for part in (self.k, self.v))
            q, k = rotated(q, cosine, sine).to(v.dtype), rotated(k, cosine, sine).to(v.dtype)
            k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
            core = (q, k, v, True, 0.0)
            y = checkpoint(attend, *core, use_reentrant=False) if recompute == "selective" else attend(*core)
            return self.out(y.transpose(1, 2).reshape(b, s, heads * head))

        def forward(self, x, cosine, sine):
            x = x + self.attention(self.norm1(x), cosine, sine)
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(shape.vocabulary, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(shape.layers))
            self.norm = RmsNorm(hidden)
            turns = 500000.0 ** (-torch.arange(0, head, 2).float() / head)
            angles = torch.outer(torch.arange(sequence).float(), turns).repeat(1, 2)
            self.register_buffer("cosine", angles.cos(), persistent=False)
            self.register_buffer("sine", angles.sin(), persistent=False)
            self.head = self.tokens if shape.tied else nn.Linear(hidden, shape.vocabulary, bias=False)

        def forward(self, tokens, targets):
            x = self.tokens(tokens)
            for block in self.blocks:
                if recompute == "full":
                    x = checkpoint(block, x, self.cosine, self.sine, use_reentrant=False)
                else:
                    x = block(x, self.cosine, self.sine)
            return loss(self.norm(x), self.head.weight, targets)

    model = Model()
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
    return model
