"""Vision–language models in plain PyTorch, as scenarios of family vision_language say them: the encoder of LLaVA (a
vision transformer without its last norm, whose class token is dropped), linear layers, and a Llama whose sequence
begins with the visual tokens. Logits are those of all tokens, the loss that of the text.
"""

import torch
from host_cases import VISION
from host_parallel import Mesh, Stage, scores_of
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

DROPOUT = 0.0  # CLIP, SigLIP and the usual ViTs have none
IGNORED = -100  # cross_entropy's target of a token without a loss


class EncoderBlock(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def attention(self, x):
        q, k, v = (part(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        weights = functional.dropout(torch.softmax(scores_of(q, k, False), -1), DROPOUT)
        return functional.dropout(self.out((weights @ v).transpose(1, 2).flatten(2)), DROPOUT)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + functional.dropout(self.down(functional.gelu(self.up(self.norm2(x)))), DROPOUT)


class Encoder(nn.Module):
    def __init__(self, layers, hidden, heads, image_size, patch_size):
        super().__init__()
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, hidden))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size)**2 + 1, hidden))
        self.patches = nn.Conv2d(3, hidden, patch_size, stride=patch_size)
        self.blocks = nn.ModuleList(EncoderBlock(hidden, heads) for _ in range(layers))

    def embedded(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(len(x), -1, -1), x), 1)
        return functional.dropout(x + self.positions, DROPOUT)


class Projector(nn.Module):
    """Linear layers with GELU between them, over `merge` x `merge` patches at a time."""

    def __init__(self, encoder, language, layers, merge):
        super().__init__()
        self.merge, widths = merge, [encoder * merge**2] + [language] * layers
        self.linears = nn.ModuleList(nn.Linear(*ends) for ends in zip(widths, widths[1:]))

    def forward(self, x):
        if self.merge > 1:
            side = round(x.shape[1]**0.5) // self.merge
            x = x.unflatten(1, (side, self.merge, side, self.merge)).transpose(2, 3).flatten(3).flatten(1, 2)
        for linear in self.linears[:-1]:
            x = functional.gelu(linear(x))
        return self.linears[-1](x)


class Adapted(nn.Module):
    """A frozen linear layer with a low-rank one beside it."""

    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


def adapt(module, rank):
    for name, part in module.named_children():
        if isinstance(part, nn.Linear):
            setattr(module, name, Adapted(part, rank))
        else:
            adapt(part, rank)


class VisionLanguage(nn.Module):
    def __init__(self, case):
        super().__init__()
        shape = VISION[case["model"]]
        language = dict(shape["language"], family="llama", experts=0, ffn=shape["language"]["ffn_hidden"])
        self.vision = Encoder(**shape["vision"])
        self.projector = Projector(shape["vision"]["hidden"], language["hidden"], **shape["projector"])
        self.language = Stage(language, case, Mesh(case, 0), 0, language["layers"])
        self.checkpoint = case["checkpoint"]
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        for part in case["freeze"] + ["language"] * bool(case["lora"]):
            getattr(self, part).requires_grad_(False)
        if case["lora"]:
            adapt(self.language.blocks, case["lora"])

    def through(self, blocks, x):
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return x

    def forward(self, images, tokens, targets):
        """`images`: those of all samples in a row."""
        encoded = self.through(self.vision.blocks, self.vision.embedded(images))[:, 1:]
        visual = self.projector(encoded).unflatten(0, (len(tokens), -1)).flatten(1, 2)
        # Blocks of language models take sequences first, samples second.
        x = self.through(self.language.blocks,
                         torch.cat((visual.transpose(0, 1), self.language.embedding(tokens))))
        head = self.language.head
        return head.loss(head(x), functional.pad(targets, (visual.shape[1], 0), value=IGNORED))


def prepare(case):
    """The model, and a function from what is called (the model, or what wraps it) to the loss."""
    model, shape = VisionLanguage(case), VISION[case["model"]]
    side = shape["vision"]["image_size"]
    images = torch.randn(case["batch"] * case["images"], 3, side, side)
    tokens, targets = (torch.randint(0, shape["language"]["vocabulary"], (case["batch"], case["text"]))
                       for _ in range(2))
    return model, lambda call: call(images, tokens, targets)
