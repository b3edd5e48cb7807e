"""Fine-tuning's additions to a step compute what they stand for. Needs PyTorch."""

import pytest

torch = pytest.importorskip("torch", reason="no fine-tuning without PyTorch (Debian: python3-torch)")

import finetune  # noqa: E402
import models  # noqa: E402


def test_nf4_keeps_levels_exactly_and_normal_weights_within_a_tenth():
    torch.manual_seed(1)
    # Each block of 64 has all 16 levels four times: every scale is one, their mean.
    levels = torch.tensor(finetune.LEVELS).repeat(4 * finetune.OUTER_BLOCK)
    kept = finetune.dequantise(*finetune.quantised(levels.view(finetune.OUTER_BLOCK, -1)))
    assert torch.equal(kept.flatten(), levels.to(torch.bfloat16))
    weights = torch.randn(256, 256)
    error = finetune.dequantise(*finetune.quantised(weights)).view(256, 256).float() - weights
    assert 0.05 < error.norm() / weights.norm() < 0.12  # QLoRA: 4 bits by quantiles of the normal distribution
    packed, scales = finetune.quantised(weights)[:2]
    assert (packed.numel(), scales.numel()) == (256 * 256 // 2, 256 * 256 // 64)


def test_gradients_pass_through_frozen_weights():
    linear = torch.nn.Linear(256, 64, bias=False)
    frozen = finetune.Nf4Linear(linear)
    weights = finetune.dequantise(*frozen.buffers()).view(64, 256).float()
    x = torch.randn(3, 256, requires_grad=True)
    frozen(x).float().sum().backward()
    assert torch.allclose(x.grad, weights.sum(0).expand(3, -1), atol=0.02)


@pytest.mark.parametrize("chunks", [1, 3, 8])
def test_a_loss_in_chunks_is_the_loss(chunks):
    torch.manual_seed(1)
    targets = torch.randint(0, 50, (2, 5))

    def gradients(loss):
        hidden, weight = torch.ones(2, 5, 16).cumsum(1).div(9).requires_grad_(), torch.eye(50, 16).requires_grad_()
        value = loss(hidden, weight, targets)
        (3 * value).backward()
        return value.detach(), hidden.grad, weight.grad

    in_chunks = finetune.loss_of(dict(loss=f"chunked({chunks})"), None, torch.device("cpu"))
    for one, other in zip(gradients(in_chunks), gradients(models.mean_loss)):
        assert torch.allclose(one, other, atol=1e-6)


def test_the_offloaded_optimizer_updates_as_adamw_does():
    here, there = (torch.nn.Parameter(torch.arange(6.0)) for _ in range(2))
    usual, offloaded = finetune.adamw([here]), finetune.OffloadedAdamW([there], None)
    for _ in range(3):
        for parameter, optimizer in ((here, usual), (there, offloaded)):
            optimizer.zero_grad()
            parameter.pow(2).sum().backward()
            optimizer.step()
    assert torch.equal(here, there) and not torch.equal(here, torch.arange(6.0))


def test_adapters_are_trained_alone_on_the_layers_that_are_named():
    block = torch.nn.Module()
    block.q, block.up, block.norm = torch.nn.Linear(64, 64, bias=False), torch.nn.Linear(64, 256, bias=False), torch.nn.Module()
    model = torch.nn.Module()
    model.blocks = torch.nn.ModuleList([block])
    x = torch.randn(2, 64)
    before = block.q(x)
    finetune.adapt(model, dict(lora=4, targets=["qkv"]))
    assert sum(each.numel() for each in model.parameters() if each.requires_grad) == 4 * (64 + 64)
    assert torch.equal(block.q(x), before)  # an adapter begins with zero
