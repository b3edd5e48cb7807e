"""Steps of a transformer whose work is divided over hosts: by tensors, sequences, experts, stages, and their mixtures.

Tensor ranks divide products as Megatron does: columns, then rows, then a sum over the ranks; words of embedding and
head as well. Context ranks pass keys and values round a ring. Experts' tokens are exchanged all to all. Stages are
those of torch.distributed.pipelining, shards those of FullyShardedDataParallel and ZeroRedundancyOptimizer, replicas
those of DistributedDataParallel. PyTorch 2.6 with Gloo, fp32, one thread.
"""

import contextlib
import functools
import math

import torch
import torch.distributed as dist
from host_cases import FAMILIES, ORDER, RATE
from models import RmsNorm, rotated
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def group_of(rank, every):
    """The one of these groups of ranks that has this rank in it: every rank takes part in making every group."""
    mine = None
    for members in every:
        group = dist.new_group(members)
        mine = group if rank in members else mine
    return mine


class Mesh:
    """Which ranks divide what with this one. The first of ORDER runs over neighbouring ranks."""

    def __init__(self, case, rank):
        self.size = {name: case[name] for name in ORDER}
        self.groups, self.ranks, self.at, stride = {}, {}, {}, 1
        for name, size in self.size.items():
            firsts = [first for first in range(math.prod(self.size.values())) if first // stride % size == 0]
            sets = [[first + i * stride for i in range(size)] for first in firsts]
            self.groups[name] = group_of(rank, sets) if size > 1 else None
            self.ranks[name] = next(members for members in sets if rank in members)
            self.at[name] = rank // stride % size
            stride *= size
        tensor, context, data, pipeline = self.size.values()
        self.replicas = None  # which hold the same weights
        if context * data > 1:
            self.replicas = group_of(rank, [[t + tensor * (k + context * data * p) for k in range(context * data)]
                                            for t in range(tensor) for p in range(pipeline)])


class Exchange(torch.autograd.Function):
    """One of the functions below between tensor ranks, and another one for its gradient."""

    @staticmethod
    def forward(ctx, x, group, there, back):
        ctx.group, ctx.back = group, back
        return there(x, group)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.back(gradient, ctx.group), None, None, None


def same(x, group):
    return x


def summed(x, group):
    x = x.clone()
    dist.all_reduce(x, group=group)
    return x


def gathered(x, group):
    """Along the sequence, which is the first dimension under sequence parallelism."""
    whole = torch.empty(x.shape[0] * dist.get_world_size(group), *x.shape[1:])
    dist.all_gather_into_tensor(whole, x.contiguous(), group=group)
    return whole


def scattered(x, group):
    part = torch.empty(x.shape[0] // dist.get_world_size(group), *x.shape[1:])
    dist.reduce_scatter_tensor(part, x.contiguous(), group=group)
    return part


def own_part(x, group):
    return x.chunk(dist.get_world_size(group))[dist.get_rank(group)]


class AllToAll(torch.autograd.Function):
    """Rows to and from all ranks of the group; `sent` and `received` say how many."""

    @staticmethod
    def forward(ctx, x, sent, received, group):
        ctx.sent, ctx.received, ctx.group = sent, received, group
        result = torch.empty(sum(received), x.shape[1])
        dist.all_to_all_single(result, x.contiguous(), received, sent, group=group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        result = torch.empty(sum(ctx.sent), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), ctx.sent, ctx.received, group=ctx.group)
        return result, None, None, None


class ParallelLoss(torch.autograd.Function):
    """Cross-entropy of logits whose words are divided: maximum, sum and target of each row over all ranks."""

    @staticmethod
    def forward(ctx, logits, targets, first, group):
        largest = logits.max(-1).values
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        exponentials = (logits - largest[:, None]).exp()
        sums = exponentials.sum(-1)
        dist.all_reduce(sums, group=group)
        own = (targets >= first) & (targets < first + logits.shape[1])
        places = torch.where(own, targets - first, 0)
        said = torch.where(own, logits.gather(1, places[:, None])[:, 0] - largest, 0.0)
        dist.all_reduce(said, group=group)
        ctx.save_for_backward(exponentials.div_(sums[:, None]), own, places)
        return (sums.log() - said).mean()

    @staticmethod
    def backward(ctx, gradient):
        softmax, own, places = ctx.saved_tensors
        softmax.scatter_add_(1, places[:, None], -own.to(softmax.dtype)[:, None])
        return softmax * (gradient / len(own)), None, None, None


def scores_of(q, k, diagonal):
    """`diagonal`: keys and queries are of the same positions, so that some keys are later than some queries."""
    scores = (q @ k.transpose(-2, -1)) * (1.0 / q.shape[-1]**0.5)
    if diagonal:
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores


def attend(q, k, v, dropout):
    """Standard causal attention."""
    return functional.dropout(torch.softmax(scores_of(q, k, True), -1), dropout) @ v


class Pass:
    """A tensor on its way to the next of the ring (`way` 1) or the one before (-1), and what comes from the other."""

    def __init__(self, tensor, mesh, way):
        ranks, here = mesh.ranks["context"], mesh.at["context"]
        self.sent, self.came = tensor.contiguous(), torch.empty(tensor.shape)
        # A receiver's word that it is ready travels behind what it has sent to the same host before.
        self.works = [dist.irecv(self.came, ranks[(here - way) % len(ranks)]),
                      dist.isend(self.sent, ranks[(here + way) % len(ranks)])]

    def wait(self):
        for work in self.works:
            work.wait()
        return self.came


class RingAttention(torch.autograd.Function):
    """Causal attention to the keys and values of all context ranks, which are passed round while those before are
    attended to; backward they are passed back from where they have come to, and their gradients behind them, which so
    come home (Transformer Engine, context_parallel.py, AttnFuncWithCPAndKVP2P)."""

    @staticmethod
    def blocks(kv, owner, mesh, way):
        """Keys and values of each rank, and whose they are, from `owner` on, whose are here."""
        size = mesh.size["context"]
        for step in range(size):
            on_its_way = Pass(kv, mesh, way) if step + 1 < size else None
            yield kv, owner
            kv = on_its_way.wait() if on_its_way else None
            owner = (owner - way) % size

    @staticmethod
    def forward(ctx, q, kv, mesh, dropout):
        result, sums, here = torch.zeros_like(q), None, mesh.at["context"]
        ctx.masks = []
        for block, owner in RingAttention.blocks(kv, here, mesh, 1):
            last = block
            if owner > here:  # all of its keys are later than all queries
                continue
            scores = scores_of(q, block[0], owner == here)
            own = torch.logsumexp(scores, -1, keepdim=True)
            both = own if sums is None else torch.logaddexp(sums, own)
            weights = torch.exp(scores - both)
            mask = None
            if dropout:
                mask = torch.empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout)
                weights = weights * mask
            ctx.masks.append(mask)
            kept = 0.0 if sums is None else torch.exp(sums - both)
            result = result * kept + weights @ block[1]
            sums = both
        ctx.save_for_backward(q, last, result, sums)
        ctx.mesh = mesh
        return result

    @staticmethod
    def backward(ctx, gradient):
        q, last, result, sums = ctx.saved_tensors
        mesh, here, behind = ctx.mesh, ctx.mesh.at["context"], None
        to_queries = torch.zeros_like(q)
        delta = (gradient * result).sum(-1, keepdim=True)
        masks = reversed(ctx.masks)
        for block, owner in RingAttention.blocks(last, (here + 1) % mesh.size["context"], mesh, -1):
            own = torch.zeros_like(block)
            if owner <= here:
                k, v = block
                weights, mask = torch.exp(scores_of(q, k, owner == here) - sums), next(masks)
                own[1] = (weights if mask is None else weights * mask).transpose(-2, -1) @ gradient
                of_weights = gradient @ v.transpose(-2, -1)
                if mask is not None:
                    of_weights = of_weights * mask
                of_scores = weights * (of_weights - delta) * (1.0 / q.shape[-1]**0.5)
                to_queries += of_scores @ k
                own[0] = of_scores.transpose(-2, -1) @ q
            if behind is not None:
                own += behind.wait()
            behind = Pass(own, mesh, -1) if owner != here else None
        return to_queries, own, None, None


class Experts(nn.Module):
    """Feed-forward experts; which tokens an expert gets is stated, so that all runs of a case are alike."""

    def __init__(self, shape, case, mesh):
        super().__init__()
        self.shape, self.case, self.mesh = shape, case, mesh
        self.ranks = case["expert"]
        self.local = shape["experts"] // self.ranks
        self.router = nn.Linear(shape["hidden"], shape["experts"], bias=False)
        self.ways = nn.ModuleList(GatedWay(shape["hidden"], shape["ffn"]) for _ in range(self.local))

    def counts(self, copies):
        """Of a rank's copies of tokens, those for each expert: the first rank's get `skew` times the mean."""
        experts = self.shape["experts"]
        share = self.case["skew"] / self.ranks
        first = round(copies * share / self.local)
        rest = 0 if self.ranks == 1 else (copies - first * self.local) // (experts - self.local)
        counts = [first] * self.local + [rest] * (experts - self.local)
        counts[-1] += copies - sum(counts)
        return counts

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        k = self.shape["per_token"]
        weights, _ = torch.softmax(self.router(x), -1).topk(k)
        counts = self.counts(len(x) * k)
        order = torch.arange(len(x) * k) % len(x)  # copies, those for the first expert first
        routed = x[order]
        group = self.mesh.groups["data"]
        sent = [sum(counts[r * self.local:(r + 1) * self.local]) for r in range(self.ranks)]
        here = self.mesh.at["data"] % self.ranks
        received = [sent[here]] * self.ranks  # all route alike
        if self.ranks > 1:
            routed = AllToAll.apply(routed, sent, received, group)
        own = counts[here * self.local:(here + 1) * self.local]
        if self.ranks > 1:  # from each rank come the tokens for each expert: by expert
            blocks = routed.split(own * self.ranks)
            by_expert = [torch.cat(blocks[e::self.local]) for e in range(self.local)]
        else:
            by_expert = routed.split(own)
        results = [way(part) for way, part in zip(self.ways, by_expert)]
        if self.ranks > 1:
            parts = [result.chunk(self.ranks) for result in results]
            back = torch.cat([parts[e][r] for r in range(self.ranks) for e in range(self.local)])
            back = AllToAll.apply(back, received, sent, group)
        else:
            back = torch.cat(results)
        weighted = back * weights.t().reshape(-1, 1)
        return torch.zeros_like(x).index_add(0, order, weighted).view(shape)


class GatedWay(nn.Module):
    def __init__(self, hidden, wide):
        super().__init__()
        self.gate, self.up = (nn.Linear(hidden, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, hidden, bias=False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Divided:
    """Communication of a product's inputs and results between tensor ranks."""

    def __init__(self, case, mesh):
        self.group = mesh.groups["tensor"]
        self.sequence = case["sequence"]

    def enter(self, x):
        if self.group is None:
            return x
        there, back = (gathered, scattered) if self.sequence else (same, summed)
        return Exchange.apply(x, self.group, there, back)

    def leave(self, x):
        if self.group is None:
            return x
        there, back = (scattered, gathered) if self.sequence else (summed, same)
        return Exchange.apply(x, self.group, there, back)


class Block(nn.Module):
    """Sequences first, samples second, so that parts of a sequence are joined by one gather."""

    def __init__(self, shape, case, mesh):
        super().__init__()
        self.shape, self.mesh, self.way = shape, mesh, Divided(case, mesh)
        self.gpt = shape["family"] == "gpt"
        hidden, tensor = shape["hidden"], case["tensor"]
        self.heads, self.head = shape["heads"] // tensor, hidden // shape["heads"]
        norm = nn.LayerNorm if self.gpt else RmsNorm
        self.norm1, self.norm2 = norm(hidden), norm(hidden)
        width = hidden // tensor
        if self.gpt:
            self.qkv = nn.Linear(hidden, 3 * width)
            self.up, self.down = nn.Linear(hidden, 4 * width), nn.Linear(4 * width, hidden, bias=tensor == 1)
        else:
            self.q, self.k, self.v = (nn.Linear(hidden, width, bias=False) for _ in range(3))
            self.feed = (Experts(shape, case, mesh) if shape["experts"] else
                         GatedWay(hidden, shape["ffn"] // tensor))
            turns = 10000.0**(-torch.arange(0, self.head, 2).float() / self.head)
            angles = torch.outer(torch.arange(shape["sequence"]).float(), turns).repeat(1, 2)
            self.register_buffer("cosine", angles.cos(), persistent=False)
            self.register_buffer("sine", angles.sin(), persistent=False)
        self.out = nn.Linear(width, hidden, bias=self.gpt and tensor == 1)
        self.dropout = 0.1 if self.gpt else 0.0

    def attention(self, x):
        x = self.way.enter(x)
        s, b, _ = x.shape
        parts = self.qkv(x).chunk(3, dim=-1) if self.gpt else (self.q(x), self.k(x), self.v(x))
        q, k, v = (t.view(s, b, self.heads, self.head).permute(1, 2, 0, 3) for t in parts)
        first = s * self.mesh.at["context"]
        if not self.gpt:
            cosine, sine = self.cosine[first:first + s], self.sine[first:first + s]
            q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        if self.mesh.size["context"] > 1:
            y = RingAttention.apply(q, torch.stack((k, v)), self.mesh, self.dropout)
        else:
            y = attend(q, k, v, self.dropout)
        y = y.permute(2, 0, 1, 3).reshape(s, b, -1)
        return functional.dropout(self.way.leave(self.out(y)), self.dropout)

    def mlp(self, x):
        x = self.way.enter(x)
        y = self.down(functional.gelu(self.up(x))) if self.gpt else self.feed(x)
        return functional.dropout(self.way.leave(y), self.dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embedding(nn.Module):
    def __init__(self, shape, case, mesh):
        super().__init__()
        self.shape, self.mesh, self.sequence = shape, mesh, case["sequence"]
        self.words = shape["vocabulary"] // case["tensor"]
        self.tokens = nn.Embedding(self.words, shape["hidden"])
        self.positions = nn.Embedding(shape["sequence"], shape["hidden"]) if shape["family"] == "gpt" else None

    def forward(self, tokens):
        """`tokens`: samples x this rank's part of the sequence."""
        group = self.mesh.groups["tensor"]
        if group is None:
            x = self.tokens(tokens)
        else:
            first = self.words * self.mesh.at["tensor"]
            own = (tokens >= first) & (tokens < first + self.words)
            x = Exchange.apply(self.tokens(torch.where(own, tokens - first, 0)) * own[..., None], group, summed, same)
        length = tokens.shape[1]
        if self.positions is not None:
            first = length * self.mesh.at["context"]
            x = functional.dropout(x + self.positions(torch.arange(first, first + length)), 0.1)
        x = x.transpose(0, 1)
        if self.sequence:  # gradients of all parts come together in the sum above
            x = Exchange.apply(x, group, own_part, gathered)
        return x.contiguous()


class Head(nn.Module):
    def __init__(self, shape, case, mesh):
        super().__init__()
        self.mesh, self.way = mesh, Divided(case, mesh)
        self.norm = (nn.LayerNorm if shape["family"] == "gpt" else RmsNorm)(shape["hidden"])
        self.words = shape["vocabulary"] // case["tensor"]
        self.weight = nn.Parameter(torch.randn(self.words, shape["hidden"]) * 0.02)

    def forward(self, x):
        x = self.way.enter(self.norm(x))
        return functional.linear(x.transpose(0, 1).flatten(0, 1), self.weight)

    def loss(self, logits, targets):
        group = self.mesh.groups["tensor"]
        if group is None:
            return functional.cross_entropy(logits, targets.flatten())
        return ParallelLoss.apply(logits, targets.flatten(), self.words * self.mesh.at["tensor"], group)


class Stage(nn.Module):
    """Layers from `first` to `end`, the embedding before the first of all, the head behind the last."""

    def __init__(self, shape, case, mesh, first, end):
        super().__init__()
        self.embedding = Embedding(shape, case, mesh) if first == 0 else None
        self.blocks = nn.ModuleList(Block(shape, case, mesh) for _ in range(end - first))
        self.head = Head(shape, case, mesh) if end == shape["layers"] else None
        self.checkpoint = case["checkpoint"]
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return x if self.head is None else self.head(x)


def layers_of_chunks(case, layers):
    """First and end of each chunk, in the order of the model."""
    chunks = case["pipeline"] * case["interleave"]
    counts = case["stage_layers"] or [layers // chunks] * chunks
    ends = [sum(counts[:i + 1]) for i in range(chunks)]
    return list(zip([0] + ends[:-1], ends))


def places_of(case, stage):
    """Chunks that a stage holds: one in each round; of a zero-bubble schedule with two the second ones come back."""
    stages = case["pipeline"]
    if case["schedule"] == "zero_bubble" and case["interleave"] == 2:
        return [stage, 2 * stages - 1 - stage]
    return [stage + stages * i for i in range(case["interleave"])]


def sharing(case, mesh, module):
    """The module as replicas share its weights and gradients."""
    if mesh.replicas is None:
        return module
    if case["sharding"] in ("full", "hybrid", "gradients"):
        from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        strategy = {"full": ShardingStrategy.FULL_SHARD, "hybrid": ShardingStrategy.HYBRID_SHARD,
                    "gradients": ShardingStrategy.SHARD_GRAD_OP}[case["sharding"]]
        groups = mesh.replicas
        if case["sharding"] == "hybrid":
            groups = hybrid_groups(case)
        return FullyShardedDataParallel(module, process_group=groups, sharding_strategy=strategy,
                                        auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu"),
                                        use_orig_params=True)
    replicated = nn.parallel.DistributedDataParallel
    own = [name for name, _ in module.named_parameters() if ".ways." in name] if case["expert"] > 1 else []
    replicated._set_params_and_buffers_to_ignore_for_model(module, own)
    return replicated(module, process_group=mesh.replicas)


def hybrid_groups(case):
    """Shards over neighbours, `shard` at a time; replicas across them."""
    rank, shard, data = dist.get_rank(), case["shard"], case["data"]
    return (group_of(rank, [list(range(first, first + shard)) for first in range(0, data, shard)]),
            group_of(rank, [list(range(i, data, shard)) for i in range(shard)]))


def optimizer_of(case, mesh, modules):
    parameters = [p for module in modules for p in module.parameters()]
    if case["sharding"] == "optimizer":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(parameters, torch.optim.SGD, mesh.replicas, lr=RATE, foreach=False)
    return torch.optim.SGD(parameters, lr=RATE, foreach=False)


def order_of(case, mesh):
    """Passes of this stage in order: (chunk's place, F, B, I or W, micro-batch); B is both I and W."""
    stages, here, micro = case["pipeline"], mesh.at["pipeline"], case["micro_batches"]
    if case["interleave"] == 1 and case["schedule"] in ("gpipe", "1f1b"):
        ahead = micro if case["schedule"] == "gpipe" else min(micro, stages - here)
        order = [("F", i) for i in range(ahead)]
        for i in range(micro):
            order += [("B", i)] + ([("F", ahead + i)] if ahead + i < micro else [])
        return [(here, *action) for action in order]
    from torch.distributed import pipelining
    from torch.distributed.pipelining import schedules
    kind = {"interleaved": pipelining.ScheduleInterleaved1F1B, "zero_bubble": pipelining.ScheduleInterleavedZeroBubble}
    kind = schedules.ScheduleZBVZeroBubble if places_of(case, 0)[-1] == 2 * stages - 1 else kind[case["schedule"]]
    told = kind([pipelining.PipelineStage(nn.Identity(), place, stages * case["interleave"], torch.device("cpu"),
                                          group=mesh.groups["pipeline"]) for place in places_of(case, here)], micro,
                loss_fn=lambda logits, targets: logits)
    return [(action.stage_index, str(action.computation_type), action.microbatch_index)
            for action in told.pipeline_order[here] if action]


class Pipeline:
    """A stage's chunks and its messages. What will come is asked for when the step begins, and nothing that is sent is
    waited for before its end; torch.distributed.pipelining itself waits for sends and receives together, which on Gloo
    never ends, so that its orders alone are used."""

    def __init__(self, case, mesh, modules, head):
        self.case, self.mesh, self.head = case, mesh, head
        self.places, self.order = places_of(case, mesh.at["pipeline"]), order_of(case, mesh)
        self.modules = dict(zip(self.places, modules))
        self.last = case["pipeline"] * case["interleave"] - 1
        shape = FAMILIES[case["model"]]
        length = shape["sequence"] // case["context"] // (case["tensor"] if case["sequence"] else 1)
        self.size = length, case["batch"], shape["hidden"]

    def rank_of(self, place):
        stages = self.case["pipeline"]
        stage = place % stages
        if self.case["schedule"] == "zero_bubble" and place >= stages:
            stage = 2 * stages - 1 - place
        return self.mesh.ranks["pipeline"][stage]

    def tag(self, place, back, micro):
        return (2 * place + back) * self.case["micro_batches"] + micro

    def begin(self):
        self.coming, self.sent, self.kept, self.here = {}, [], {}, {}
        for place, action, micro in self.order:
            wanted = [(place - 1, False)] if action == "F" and place > 0 else []
            wanted += [(place + 1, True)] if action in "BI" and place < self.last else []
            for other, back in wanted:
                if self.rank_of(other) != dist.get_rank():
                    buffer = torch.empty(self.size)
                    work = dist.irecv(buffer, self.rank_of(other), tag=self.tag(place, back, micro))
                    self.coming[place, back, micro] = buffer, work

    def take(self, place, back, micro):
        if (place, back, micro) in self.here:
            return self.here.pop((place, back, micro))
        buffer, work = self.coming.pop((place, back, micro))
        work.wait()
        return buffer

    def give(self, tensor, place, back, micro):
        """To the chunk at `place`."""
        if self.rank_of(place) == dist.get_rank():
            self.here[place, back, micro] = tensor
        else:
            tensor = tensor.contiguous()
            self.sent.append((tensor, dist.isend(tensor, self.rank_of(place), tag=self.tag(place, back, micro))))

    def forward(self, place, micro, tokens, targets):
        own = slice(micro * self.case["batch"], (micro + 1) * self.case["batch"])
        x = tokens[own] if place == 0 else self.take(place, False, micro).requires_grad_()
        y = self.modules[place](x)
        if place == self.last:
            y = self.head.loss(y, targets[own]) / self.case["micro_batches"]
        else:
            self.give(y.detach(), place + 1, False, micro)
        self.kept[place, micro] = x, y

    def backward(self, place, micro, action):
        from torch.distributed.pipelining import _backward
        if action == "W":
            parts = self.kept.pop((place, micro, "W"))
            parameters = self.modules[place].parameters()
            return parts() if place == 0 else _backward.stage_backward_weight(parameters, parts)
        x, y = self.kept.pop((place, micro))
        gradient = None if place == self.last else self.take(place, True, micro)
        if action == "I" and place == 0:  # nobody waits for it
            self.kept[place, micro, "W"] = functools.partial(torch.autograd.backward, y, gradient)
            return None
        if action == "I":
            (result,), parts = _backward.stage_backward_input([y], None if gradient is None else [gradient], [x],
                                                              self.modules[place].parameters())
            self.kept[place, micro, "W"] = parts
        else:
            torch.autograd.backward(y, gradient)
            result = x.grad
        if place > 0:
            self.give(result, place - 1, True, micro)
        return None

    def run(self, tokens, targets):
        self.begin()
        for place, action, micro in self.order:
            if action == "F":
                self.forward(place, micro, tokens, targets)
            else:
                self.backward(place, micro, action)
        for _, work in self.sent:
            work.wait()
        if self.mesh.replicas is not None:
            for module in self.modules.values():
                sum_gradients(module, self.mesh.replicas)


def sum_gradients(module, group):
    """All of a chunk's gradients, after the backward passes."""
    gradients = [p.grad for p in module.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for gradient, new in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(new.view_as(gradient))


def prepare(case, rank):
    """A function that takes a step of the case on this rank."""
    torch.manual_seed(1)
    shape, mesh = FAMILIES[case["model"]], Mesh(case, rank)
    bounds = layers_of_chunks(case, shape["layers"])
    places = places_of(case, mesh.at["pipeline"])
    bare = [Stage(shape, case, mesh, *bounds[place]) for place in places]
    modules = bare if case["pipeline"] > 1 else [sharing(case, mesh, stage) for stage in bare]
    head = next((stage.head for stage in bare if stage.head), None)
    optimizer = optimizer_of(case, mesh, modules)
    samples, length = case["batch"] * case["micro_batches"], shape["sequence"] // case["context"]
    tokens, targets = (torch.randint(0, shape["vocabulary"], (samples, length)) for _ in range(2))
    if case["pipeline"] > 1:
        run = functools.partial(Pipeline(case, mesh, bare, head).run, tokens, targets)
    else:
        run = functools.partial(accumulated, case, modules[0], head, tokens, targets)

    def step():
        optimizer.zero_grad(set_to_none=True)
        run()
        optimizer.step()

    step.weights = [p for stage in bare for p in stage.parameters()]
    return step


def accumulated(case, module, head, tokens, targets):
    """Micro-batch by micro-batch; gradients are exchanged after the last, but for shards, which have no room."""
    silent = contextlib.nullcontext if case["sharding"] in ("full", "hybrid", "gradients") else getattr(
        module, "no_sync", contextlib.nullcontext)
    for i in range(case["micro_batches"]):
        own = slice(i * case["batch"], (i + 1) * case["batch"])
        last = i + 1 == case["micro_batches"]
        with contextlib.nullcontext() if last else silent():
            head.loss(module(tokens[own]), targets[own]).backward()
