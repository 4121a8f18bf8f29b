"""The lean forward's Triton kernels against float32 references written in plain PyTorch."""

import pytest

pytest.importorskip("triton", reason="PyTorch with Triton is not installed")

import torch

from graphgain.models import kernels
from triton_stage import (
    DEVICE,
    PDL,
    assert_close,
    needs_interpreter,
    needs_kernels,
    poisoned,
    random,
    run_interpreted,
)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(20260923)


@needs_interpreter
def test_interpreted() -> None:
    run_interpreted(__file__)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_gather(pdl: bool) -> None:
    table, rows = random(50, 96), torch.tensor([49, 0, 7], device=DEVICE)
    out = poisoned(3, 96)
    kernels.gather(table, rows, out, pdl=pdl)
    assert torch.equal(out, table[rows])


def gemma_norm_reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * (1 + weight.float())


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize("added", [False, True])
def test_gemma_norm(added: bool, pdl: bool) -> None:
    residual, weight, x = random(3, 80), random(80, scale=0.1), random(3, 80)
    total = residual.float() + (x.float() if added else 0)
    out = poisoned(3, 80)
    kernels.gemma_norm(residual, weight, out, 1e-6, add=x if added else None, pdl=pdl)
    assert_close(out, gemma_norm_reference(total, weight))
    assert_close(residual, total)  # the interpreter truncates to bf16, so that bits may differ


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_silu_mul(pdl: bool) -> None:
    gate_up, out = random(2, 6000), poisoned(2, 3000)
    kernels.silu_mul(gate_up, out, pdl=pdl)
    gate, up = gate_up.float().chunk(2, dim=-1)
    assert_close(out, torch.nn.functional.silu(gate) * up)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize("tokens", [1, 2, 3, 37])
def test_delta_conv(tokens: int, pdl: bool) -> None:
    key, value = 32, 64
    channels = 2 * key + value
    x, weight, state = random(tokens, channels + 24), random(channels, 4), random(3, channels)
    history = torch.cat([state, x[:, :channels]])
    out = poisoned(tokens * channels)
    kernels.delta_conv(x, weight, state, out, key, value, pdl=pdl)
    windows = history.float().unfold(0, 4, 1)  # [tokens, channels, 4]
    expected = torch.nn.functional.silu((windows * weight.float()).sum(-1))
    parts = out.split([tokens * key, tokens * key, tokens * value])
    shown = torch.cat([part.view(tokens, -1) for part in parts], dim=1)
    assert_close(shown, expected)
    assert torch.equal(state, history[-3:])


def delta_reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gated delta rule token by token in float32; q and k are [tokens, heads, dim]."""
    state, outputs = state.clone(), []
    q = torch.nn.functional.normalize(q.float(), dim=-1, eps=1e-12) * q.shape[-1] ** -0.5
    k = torch.nn.functional.normalize(k.float(), dim=-1, eps=1e-12)
    for t in range(q.shape[0]):
        state *= decay[t].exp()[:, None, None]
        delta = (v[t].float() - torch.einsum("hkv,hk->hv", state, k[t])) * beta[t][:, None]
        state += torch.einsum("hk,hv->hkv", k[t], delta)
        outputs.append(torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(outputs), state


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_delta_step(pdl: bool) -> None:
    key_heads, heads, dim = 2, 6, 32
    qkv, z = random((2 * key_heads + heads) * dim), random(heads * dim)
    ba, norm = random(1, 2 * heads), random(dim)
    a_log, dt_bias = random(heads, dtype=torch.float32), random(heads, dtype=torch.float32)
    state = random(heads, dim, dim, dtype=torch.float32)
    q, k, v = qkv.split([key_heads * dim, key_heads * dim, heads * dim])
    beta = ba[:, :heads].float().sigmoid()
    decay = -a_log.exp() * torch.nn.functional.softplus(ba[:, heads:].float() + dt_bias)
    q, k = (x.view(1, key_heads, dim).repeat_interleave(3, dim=1) for x in (q, k))
    expected, after = delta_reference(q, k, v.view(1, heads, dim), decay, beta, state)
    expected = expected * torch.rsqrt(expected.square().mean(-1, keepdim=True) + 1e-6)
    expected = expected * norm.float() * torch.nn.functional.silu(z.float().view(heads, dim))
    out = poisoned(1, heads * dim)
    kernels.delta_step(qkv, z, ba, a_log, dt_bias, norm, state, out, 1e-6, pdl=pdl)
    assert_close(out, expected.view(1, -1))
    assert_close(state, after, 1e-5)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_delta_gates(pdl: bool) -> None:
    tokens, heads = 5, 6
    ba, a_log, dt_bias = random(tokens, 2 * heads, scale=4), random(heads), random(heads)
    decay = poisoned(tokens, heads, dtype=torch.float32)
    beta = poisoned(tokens, heads, dtype=torch.float32)
    kernels.delta_gates(ba, a_log, dt_bias, decay, beta, pdl=pdl)
    step = torch.nn.functional.softplus(ba[:, heads:].float() + dt_bias.float())
    assert_close(decay, -a_log.float().exp() * step, 1e-5)
    assert_close(beta, ba[:, :heads].float().sigmoid(), 1e-5)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_gated_norm(pdl: bool) -> None:
    o, z, weight = random(5, 3, 32), random(5, 3 * 32 + 16), random(32)
    out = poisoned(5, 96)
    kernels.gated_norm(o, z, weight, out, 1e-6, pdl=pdl)
    x = o.float()
    expected = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    gate = torch.nn.functional.silu(z[:, :96].float()).view(5, 3, 32)
    assert_close(out, (expected * gate).view(5, 96))


def rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    half = cosine.shape[-1]
    low, high, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    c, s = cosine.float()[:, None], sine.float()[:, None]
    return torch.cat([low * c - high * s, high * c + low * s, rest], dim=-1)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize("tokens", [1, 3])
def test_attention_prepare(tokens: int, pdl: bool) -> None:
    heads, kv_heads, dim, half, capacity = 4, 2, 64, 8, 11
    qkv = random(tokens, (2 * heads + 2 * kv_heads) * dim)
    q_norm, k_norm = random(dim, scale=0.1), random(dim, scale=0.1)
    cosine, sine = random(tokens, half), random(tokens, half)
    positions = torch.arange(5, 5 + tokens, device=DEVICE)
    q = poisoned(tokens, heads, dim)
    keys, values = poisoned(kv_heads, capacity, dim), poisoned(kv_heads, capacity, dim)
    kernels.attention_prepare(
        qkv, q_norm, k_norm, cosine, sine, positions, q, keys, values, 1e-6, pdl=pdl
    )
    both, k, v = qkv.split([2 * heads * dim, kv_heads * dim, kv_heads * dim], dim=-1)
    query = both.view(tokens, heads, 2, dim)[:, :, 0]
    assert_close(q, rotated(gemma_norm_reference(query, q_norm), cosine, sine))
    key = rotated(gemma_norm_reference(k.view(tokens, kv_heads, dim), k_norm), cosine, sine)
    assert_close(keys[:, 5 : 5 + tokens], key.transpose(0, 1))
    assert torch.equal(values[:, 5 : 5 + tokens], v.view(tokens, kv_heads, dim).transpose(0, 1))
    assert keys[:, :5].isnan().all() and keys[:, 5 + tokens :].isnan().all()


def attention_reference(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, cached: int
) -> torch.Tensor:
    tokens, heads, dim = q.shape
    group = heads // keys.shape[0]
    k, v = (x.float().repeat_interleave(group, dim=0) for x in (keys, values))
    scores = torch.einsum("thd,hcd->htc", q.float(), k) * dim**-0.5
    place = torch.arange(k.shape[1], device=q.device)
    later = place[None, :] > cached + torch.arange(tokens, device=q.device)[:, None]
    weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    return torch.einsum("htc,hcd->thd", weights, v)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize("position", [0, 31, 32, 700])
def test_decode_attention(position: int, pdl: bool) -> None:
    heads, kv_heads, dim = 12, 2, 64
    q, keys, values = random(1, heads, dim), random(kv_heads, 800, dim), random(kv_heads, 800, dim)
    expected = attention_reference(q, keys[:, : position + 1], values[:, : position + 1], position)
    keys[:, position + 1 :] = values[:, position + 1 :] = float("nan")
    scratch = kernels.AttentionScratch(heads, kv_heads, dim, DEVICE)
    place = torch.tensor([position], device=DEVICE)
    for _ in range(2):  # the second time on what the first one left
        out = poisoned(1, heads, dim)
        kernels.decode_attention(q, keys, values, place, out, scratch, pdl=pdl)
        assert_close(out, expected)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize(("tokens", "cached"), [(1, 0), (70, 0), (65, 45)])
def test_prefill_attention(tokens: int, cached: int, pdl: bool) -> None:
    heads, kv_heads, dim, capacity = 4, 2, 64, 128
    q = random(tokens, heads, dim)
    keys, values = random(kv_heads, capacity, dim), random(kv_heads, capacity, dim)
    end = cached + tokens
    expected = attention_reference(q, keys[:, :end], values[:, :end], cached)
    keys[:, end:] = values[:, end:] = float("nan")
    out = poisoned(tokens, heads, dim)
    kernels.prefill_attention(q, keys, values, out, cached, pdl=pdl)
    assert_close(out, expected)


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
def test_sigmoid_mul(pdl: bool) -> None:
    heads, dim = 3, 32
    x, qkv, out = random(2, heads * dim), random(2, 2 * heads * dim + 64), poisoned(2, heads * dim)
    kernels.sigmoid_mul(x, qkv, out, dim, pdl=pdl)
    gate = qkv[:, : 2 * heads * dim].view(2, heads, 2, dim)[:, :, 1].reshape(2, -1)
    assert_close(out, x.float() * gate.float().sigmoid())


@needs_kernels
@pytest.mark.parametrize("pdl", PDL)
@pytest.mark.parametrize("size", [64, 1000, 5000])
def test_argmax(size: int, pdl: bool) -> None:
    parts = kernels.ARGMAX_PARTS
    logits = torch.randperm(size).float().to(torch.float32).to(DEVICE)
    best = poisoned(parts, dtype=torch.float32)
    where = torch.full((parts,), -1, dtype=torch.int32, device=DEVICE)
    out = torch.tensor([-1], device=DEVICE)
    kernels.argmax(logits, best, where, out, pdl=pdl)
    assert out.item() == logits.argmax().item()
