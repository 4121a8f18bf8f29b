"""The fused kernels of the lean forward, in Triton, one function a call of the decode step.

All matrices are row-major bf16 with one row a token, unless said otherwise; sums and norms are in
float32. A kernel launched with `pdl` (programmatic dependent launch) begins before its predecessor
has ended: it waits in `gdc_wait` before it touches memory that another kernel writes, and lets its
own successor begin with `gdc_launch_dependents`. Through Triton's interpreter (TRITON_INTERPRET=1)
the kernels run on the CPU, without PDL.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

ATTENTION_SPLITS = 16
"""Parts into which decode attention divides the cached tokens of a head."""
ARGMAX_PARTS = 64

_INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def _begin(PDL: tl.constexpr):
    if PDL:
        gdc_wait()
        gdc_launch_dependents()


def _options(pdl: bool) -> dict[str, bool]:
    return {"launch_pdl": True} if pdl else {}


@triton.jit
def _silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def _softplus(x):
    return tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(tl.minimum(x, 20.0))))


@triton.jit
def _dot(a, b):
    if _INTERPRETED:  # Triton 3.6's interpreter multiplies the bit patterns of bf16 numbers
        return tl.dot(a.to(tl.float32), b.to(tl.float32))
    else:
        return tl.dot(a, b)


# -- embedding and norms --------------------------------------------------------------------------


@triton.jit
def _gather(table, rows, out, width, PDL: tl.constexpr, BLOCK: tl.constexpr):
    _begin(PDL)
    token, column = tl.program_id(0), tl.arange(0, BLOCK)
    row = tl.load(rows + token)
    keep = column < width
    tl.store(out + token * width + column, tl.load(table + row * width + column, keep), keep)


def gather(table: Tensor, rows: Tensor, out: Tensor, *, pdl: bool = False) -> None:
    """`out[t] = table[rows[t]]`: the embedding, and the rows of the rotary tables."""
    width = table.shape[1]
    _gather[(rows.numel(),)](
        table, rows, out, width, PDL=pdl, BLOCK=triton.next_power_of_2(width), **_options(pdl)
    )


@triton.jit
def _gemma_norm(
    x, residual, weight, out, width, epsilon, ADD: tl.constexpr, PDL: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    keep = column < width
    # The weight is constant, so that it may be read before the predecessor has ended.
    scale = 1.0 + tl.load(weight + column, keep, other=0.0).to(tl.float32)
    _begin(PDL)
    place = tl.program_id(0) * width + column
    total = tl.load(residual + place, keep, other=0.0).to(tl.float32)
    if ADD:
        total += tl.load(x + place, keep, other=0.0).to(tl.float32)
        tl.store(residual + place, total.to(tl.bfloat16), keep)
    inverse = tl.rsqrt(tl.sum(total * total, 0) / width + epsilon)
    tl.store(out + place, (total * inverse * scale).to(tl.bfloat16), keep)


def gemma_norm(
    residual: Tensor, weight: Tensor, out: Tensor, epsilon: float, *,
    add: Tensor | None = None, pdl: bool = False,
) -> None:  # fmt: skip
    """`out = r / rms(r) * (1 + weight)` with r the residual, to which `add` is added in place."""
    tokens, width = residual.shape
    _gemma_norm[(tokens,)](
        residual if add is None else add, residual, weight, out, width, epsilon,
        ADD=add is not None, PDL=pdl, BLOCK=triton.next_power_of_2(width), num_warps=16,
        **_options(pdl),
    )  # fmt: skip


# -- feed-forward ---------------------------------------------------------------------------------


@triton.jit
def _silu_mul(gate_up, out, width, PDL: tl.constexpr, BLOCK: tl.constexpr):
    _begin(PDL)
    token, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    keep = column < width
    row = gate_up + token * 2 * width
    gate = tl.load(row + column, keep, other=0.0).to(tl.float32)
    up = tl.load(row + width + column, keep, other=0.0).to(tl.float32)
    tl.store(out + token * width + column, (_silu(gate) * up).to(tl.bfloat16), keep)


def silu_mul(gate_up: Tensor, out: Tensor, *, pdl: bool = False) -> None:
    """`out = silu(gate) * up`, where a row of `gate_up` holds first all gates, then all ups."""
    tokens, width = out.shape
    block = min(2048, triton.next_power_of_2(width))
    grid = (tokens, triton.cdiv(width, block))
    _silu_mul[grid](gate_up, out, width, PDL=pdl, BLOCK=block, num_warps=8, **_options(pdl))


# -- Gated DeltaNet -------------------------------------------------------------------------------


@triton.jit
def _delta_conv(
    x, x_stride, weight, state, out, tokens, key_width, value_width, PDL: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    _begin(PDL)
    first, channel = tl.program_id(0) * BLOCK_T, tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    channels = 2 * key_width + value_width
    history: tl.constexpr = WIDTH - 1
    time = (first + tl.arange(0, BLOCK_T))[:, None]
    total = tl.zeros((BLOCK_T, BLOCK_C), tl.float32)
    for tap in tl.static_range(WIDTH):
        source = time + (tap - history)  # before 0 lies the state
        here = (source >= 0) & (time < tokens)
        value = tl.load(x + source * x_stride + channel[None, :], here, other=0.0).to(tl.float32)
        before = (source < 0) & (time < tokens)
        past = state + (source + history) * channels + channel[None, :]
        value += tl.load(past, before, other=0.0).to(tl.float32)
        total += value * tl.load(weight + channel * WIDTH + tap).to(tl.float32)[None, :]
    # Queries, keys and values of all tokens lie behind each other, each with its own row length.
    start = tl.program_id(1) * BLOCK_C
    region = tl.where(
        start < key_width, 0, tl.where(start < 2 * key_width, key_width, 2 * key_width)
    )
    row = tl.where(start < 2 * key_width, key_width, value_width)
    place = out + region * tokens + time * row + (channel[None, :] - region)
    tl.store(place, _silu(total).to(tl.bfloat16), time < tokens)
    if first == 0:
        # One program alone reads and writes the state of its channels: all reads come first.
        tl.debug_barrier()
        for slot in tl.static_range(history):
            last = tokens + slot - history + 0 * channel
            old = tl.load(state + (slot + tokens) * channels + channel, last < 0, other=0.0)
            new = tl.load(x + last * x_stride + channel, last >= 0, other=0.0)
            tl.store(state + slot * channels + channel, tl.where(last < 0, old, new))


def delta_conv(
    x: Tensor, weight: Tensor, state: Tensor, out: Tensor, key_width: int, value_width: int, *,
    pdl: bool = False,
) -> None:  # fmt: skip
    """Depthwise causal convolution and SiLU over the first columns of `x` (tokens by anything).

    `weight` is [channels, width]; `state` [width - 1, channels] holds the inputs before the first
    token, and afterwards those of the last ones. `out` is flat: all rows of q, of k, of v.
    """
    tokens, width = x.shape[0], weight.shape[1]
    block_c = min(128 if tokens > 1 else 256, key_width)
    block_t = 1 if tokens == 1 else 16
    grid = (triton.cdiv(tokens, block_t), (2 * key_width + value_width) // block_c)
    _delta_conv[grid](
        x, x.stride(0), weight, state, out, tokens, key_width, value_width, PDL=pdl, WIDTH=width,
        BLOCK_T=block_t, BLOCK_C=block_c, **_options(pdl),
    )  # fmt: skip


@triton.jit
def _delta_step(
    qkv, z, ba, a_log, dt_bias, norm, state, out, epsilon, key_heads, value_heads,
    PDL: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    index = tl.arange(0, HEAD)
    scale = tl.load(norm + index).to(tl.float32)
    rate = -tl.exp(tl.load(a_log + head).to(tl.float32))
    bias = tl.load(dt_bias + head).to(tl.float32)
    _begin(PDL)
    key_head = head // (value_heads // key_heads)
    q = tl.load(qkv + key_head * HEAD + index).to(tl.float32)
    k = tl.load(qkv + (key_heads + key_head) * HEAD + index).to(tl.float32)
    v = tl.load(qkv + (2 * key_heads + head) * HEAD + index).to(tl.float32)
    q *= tl.rsqrt(tl.sum(q * q, 0) + 1e-6) / tl.sqrt(HEAD * 1.0)
    k *= tl.rsqrt(tl.sum(k * k, 0) + 1e-6)
    beta = tl.sigmoid(tl.load(ba + head).to(tl.float32))
    step = tl.load(ba + value_heads + head).to(tl.float32) + bias
    decay = tl.exp(rate * _softplus(step))

    place = state + head * HEAD * HEAD + index[:, None] * HEAD + index[None, :]
    memory = tl.load(place) * decay  # [key, value]
    delta = (v - tl.sum(memory * k[:, None], 0)) * beta
    memory += k[:, None] * delta[None, :]
    tl.store(place, memory)
    o = tl.sum(memory * q[:, None], 0)

    o *= tl.rsqrt(tl.sum(o * o, 0) / HEAD + epsilon) * scale
    gate = tl.load(z + head * HEAD + index).to(tl.float32)
    tl.store(out + head * HEAD + index, (o * _silu(gate)).to(tl.bfloat16))


def delta_step(
    qkv: Tensor, z: Tensor, ba: Tensor, a_log: Tensor, dt_bias: Tensor, norm: Tensor,
    state: Tensor, out: Tensor, epsilon: float, *, pdl: bool = False,
) -> None:  # fmt: skip
    """One token of the gated delta rule, with the gated norm of its output.

    `qkv` is flat as `delta_conv` leaves it, `z` one row of gates, `ba` one row of b then a;
    `state` [value heads, key dim, value dim] is float32 and is updated. For each head:
    S *= exp(-exp(a_log) softplus(a + dt_bias)); S += k ((v - S' k) sigmoid(b))'; o = S' q.
    """
    value_heads, head = state.shape[:2]
    key_heads = (qkv.numel() // head - value_heads) // 2
    _delta_step[(value_heads,)](
        qkv, z, ba, a_log, dt_bias, norm, state, out, epsilon, key_heads, value_heads, PDL=pdl,
        HEAD=head, num_warps=8, **_options(pdl),
    )  # fmt: skip


@triton.jit
def _delta_gates(
    ba, a_log, dt_bias, decay, beta, heads, PDL: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    _begin(PDL)
    token, head = tl.program_id(0), tl.arange(0, BLOCK)
    keep = head < heads
    row = ba + token * 2 * heads + head
    rate = -tl.exp(tl.load(a_log + head, keep, other=0.0).to(tl.float32))
    bias = tl.load(dt_bias + head, keep, other=0.0).to(tl.float32)
    step = tl.load(row + heads, keep, other=0.0).to(tl.float32) + bias
    tl.store(decay + token * heads + head, rate * _softplus(step), keep)
    value = tl.sigmoid(tl.load(row, keep, other=0.0).to(tl.float32))
    tl.store(beta + token * heads + head, value, keep)


def delta_gates(
    ba: Tensor, a_log: Tensor, dt_bias: Tensor, decay: Tensor, beta: Tensor, *, pdl: bool = False
) -> None:
    """Per token and head: log of the decay, and beta, both float32, from rows of b then a."""
    tokens, heads = decay.shape
    _delta_gates[(tokens,)](
        ba, a_log, dt_bias, decay, beta, heads, PDL=pdl, BLOCK=triton.next_power_of_2(heads),
        num_warps=1, **_options(pdl),
    )  # fmt: skip


@triton.jit
def _gated_norm(
    o, z, z_stride, weight, out, epsilon, heads, PDL: tl.constexpr, HEAD: tl.constexpr
):  # fmt: skip
    index = tl.arange(0, HEAD)
    scale = tl.load(weight + index).to(tl.float32)
    _begin(PDL)
    token, head = tl.program_id(0), tl.program_id(1)
    place = (token * heads + head) * HEAD + index
    value = tl.load(o + place).to(tl.float32)
    value *= tl.rsqrt(tl.sum(value * value, 0) / HEAD + epsilon) * scale
    gate = tl.load(z + token * z_stride + head * HEAD + index).to(tl.float32)
    tl.store(out + place, (value * _silu(gate)).to(tl.bfloat16))


def gated_norm(
    o: Tensor, z: Tensor, weight: Tensor, out: Tensor, epsilon: float, *, pdl: bool = False
) -> None:
    """`out = o / rms(o) * weight * silu(z)` over each head of `o` [tokens, heads, head dim]."""
    tokens, heads, head = o.shape
    _gated_norm[(tokens, heads)](
        o, z, z.stride(0), weight, out, epsilon, heads, PDL=pdl, HEAD=head, num_warps=1,
        **_options(pdl),
    )  # fmt: skip


# -- full attention -------------------------------------------------------------------------------


@triton.jit
def _attention_prepare(
    qkv, q_norm, k_norm, cosine, sine, positions, q, keys, values, capacity, heads, kv_heads,
    epsilon, PDL: tl.constexpr, HEAD: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    _begin(PDL)
    token, part = tl.program_id(0), tl.program_id(1)
    column, turned = tl.arange(0, HEAD), tl.arange(0, HALF)
    row = qkv + token * (2 * heads + 2 * kv_heads) * HEAD
    is_query = part < heads
    # A query is followed by its gate; keys and values follow all queries.
    source = row + tl.where(is_query, 2 * part, heads + part) * HEAD
    slot = (part - heads) % kv_heads * capacity + tl.load(positions + token)
    target = tl.where(is_query, 0, slot * HEAD)
    if part >= heads + kv_heads:
        tl.store(values + target + column, tl.load(source + column))
    else:
        x = tl.load(source + column).to(tl.float32)
        inverse = tl.rsqrt(tl.sum(x * x, 0) / HEAD + epsilon)
        weight = q_norm if is_query else k_norm
        out = q + (token * heads + part) * HEAD if is_query else keys + target
        scale = 1.0 + tl.load(weight + column).to(tl.float32)
        tl.store(out + column, (x * inverse * scale).to(tl.bfloat16), column >= 2 * HALF)
        low = tl.load(source + turned).to(tl.float32) * inverse
        low *= 1.0 + tl.load(weight + turned).to(tl.float32)
        high = tl.load(source + HALF + turned).to(tl.float32) * inverse
        high *= 1.0 + tl.load(weight + HALF + turned).to(tl.float32)
        c = tl.load(cosine + token * HALF + turned).to(tl.float32)
        s = tl.load(sine + token * HALF + turned).to(tl.float32)
        tl.store(out + turned, (low * c - high * s).to(tl.bfloat16))
        tl.store(out + HALF + turned, (high * c + low * s).to(tl.bfloat16))


def attention_prepare(
    qkv: Tensor, q_norm: Tensor, k_norm: Tensor, cosine: Tensor, sine: Tensor, positions: Tensor,
    q: Tensor, keys: Tensor, values: Tensor, epsilon: float, *, pdl: bool = False,
) -> None:  # fmt: skip
    """Norm and rotary embedding of queries and keys, and the append to the cache.

    A row of `qkv` holds for each head a query and its gate, then all keys, then all values. `q` is
    [tokens, heads, head dim]; `keys` and `values` [kv heads, capacity, head dim] get the token at
    `positions[t]`. `cosine` and `sine` are rows of the first half of the turned columns.
    """
    tokens, heads, head = q.shape
    kv_heads, capacity = keys.shape[:2]
    _attention_prepare[(tokens, heads + 2 * kv_heads)](
        qkv, q_norm, k_norm, cosine, sine, positions, q, keys, values, capacity, heads, kv_heads,
        epsilon, PDL=pdl, HEAD=head, HALF=cosine.shape[1], num_warps=2, **_options(pdl),
    )  # fmt: skip


@triton.jit
def _decode_attention(
    q, keys, values, position, out, part_out, part_max, part_sum, done, capacity, scale,
    PDL: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, HEAD: tl.constexpr,
    SPLITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    _begin(PDL)
    kv_head, split = tl.program_id(0), tl.program_id(1)
    row, column, slot = tl.arange(0, ROWS), tl.arange(0, HEAD), tl.arange(0, BLOCK)
    length = tl.load(position) + 1
    share = tl.cdiv(tl.cdiv(length, BLOCK), SPLITS) * BLOCK
    start, end = split * share, tl.minimum((split + 1) * share, length)

    own = (row < GROUP)[:, None]
    heads = kv_head * GROUP + row
    query = tl.load(q + heads[:, None] * HEAD + column[None, :], own, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, HEAD), tl.float32)
    for first in range(start, end, BLOCK):
        place = first + slot
        inside = place < end
        cell = (kv_head * capacity + place)[:, None] * HEAD + column[None, :]
        key = tl.load(keys + cell, inside[:, None], other=0.0)
        score = _dot(query, tl.trans(key)) * scale
        score = tl.where(inside[None, :], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        value = tl.load(values + cell, inside[:, None], other=0.0)
        total = total * shrink + tl.sum(weight, 1)
        sums = sums * shrink[:, None] + _dot(weight.to(tl.bfloat16), value)
        top = new_top

    part = (kv_head * SPLITS + split) * ROWS + row
    tl.store(part_max + part, top)
    tl.store(part_sum + part, total)
    tl.store(part_out + part[:, None] * HEAD + column[None, :], sums)
    # The program of a head that ends last adds the parts up.
    tl.debug_barrier()
    arrived = tl.atomic_add(done + kv_head, 1, sem="acq_rel")
    tl.debug_barrier()
    if arrived == SPLITS - 1:
        top = tl.full((ROWS,), float("-inf"), tl.float32)
        for other in range(SPLITS):
            cell = (kv_head * SPLITS + other) * ROWS + row
            top = tl.maximum(top, tl.load(part_max + cell, cache_modifier=".cg"))
        total = tl.zeros((ROWS,), tl.float32)
        sums = tl.zeros((ROWS, HEAD), tl.float32)
        for other in range(SPLITS):
            cell = (kv_head * SPLITS + other) * ROWS + row
            weight = tl.exp2(tl.load(part_max + cell, cache_modifier=".cg") - top)
            total += weight * tl.load(part_sum + cell, cache_modifier=".cg")
            partial = part_out + cell[:, None] * HEAD + column[None, :]
            sums += weight[:, None] * tl.load(partial, cache_modifier=".cg")
        result = (sums / total[:, None]).to(tl.bfloat16)
        tl.store(out + heads[:, None] * HEAD + column[None, :], result, own)
        tl.store(done + kv_head, 0)  # ready for the next step


def decode_attention(
    q: Tensor, keys: Tensor, values: Tensor, position: Tensor, out: Tensor,
    scratch: "AttentionScratch", *, pdl: bool = False,
) -> None:  # fmt: skip
    """Attention of one token, `q` [1, heads, head dim], to all cached ones up to `position`.

    The tokens of a head are divided among programs, and the last one to end adds their parts up, so
    that it is one launch.
    """
    _, heads, head = q.shape
    kv_heads, capacity = keys.shape[:2]
    _decode_attention[(kv_heads, ATTENTION_SPLITS)](
        q, keys, values, position, out, scratch.out, scratch.top, scratch.total, scratch.done,
        capacity, _exp2_scale(head), PDL=pdl, GROUP=heads // kv_heads, ROWS=scratch.rows,
        HEAD=head, SPLITS=ATTENTION_SPLITS, BLOCK=32, num_warps=4, **_options(pdl),
    )  # fmt: skip


class AttentionScratch:
    """Parts of a decode attention before they are added up."""

    def __init__(self, heads: int, kv_heads: int, head_dim: int, device: torch.device) -> None:
        self.rows = max(16, triton.next_power_of_2(heads // kv_heads))  # the smallest of tl.dot
        parts = (kv_heads, ATTENTION_SPLITS, self.rows)
        self.out = torch.empty((*parts, head_dim), dtype=torch.float32, device=device)
        self.top = torch.empty(parts, dtype=torch.float32, device=device)
        self.total = torch.empty(parts, dtype=torch.float32, device=device)
        self.done = torch.zeros(kv_heads, dtype=torch.int32, device=device)


@triton.jit
def _prefill_attention(
    q, keys, values, out, tokens, cached, capacity, scale, PDL: tl.constexpr,
    HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    _begin(PDL)
    first, head = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    row, column = first + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    slot = tl.arange(0, BLOCK_N)
    own = (row < tokens)[:, None]
    place = (row[:, None] * HEADS + head) * HEAD + column[None, :]
    query = tl.load(q + place, own, other=0.0)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, HEAD), tl.float32)
    base = head // GROUP * capacity
    end = cached + tl.minimum(first + BLOCK_M, tokens)
    for start in range(0, end, BLOCK_N):
        inside = start + slot < end
        cell = (base + start + slot)[:, None] * HEAD + column[None, :]
        key = tl.load(keys + cell, inside[:, None], other=0.0)
        score = _dot(query, tl.trans(key)) * scale
        score = tl.where((start + slot)[None, :] <= cached + row[:, None], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        value = tl.load(values + cell, inside[:, None], other=0.0)
        total = total * shrink + tl.sum(weight, 1)
        sums = sums * shrink[:, None] + _dot(weight.to(tl.bfloat16), value)
        top = new_top
    tl.store(out + place, (sums / total[:, None]).to(tl.bfloat16), own)


def prefill_attention(
    q: Tensor, keys: Tensor, values: Tensor, out: Tensor, cached: int, *, pdl: bool = False
) -> None:
    """Causal attention of `q` [tokens, heads, head dim], whose first token has `cached` before it.

    The new tokens are in `keys` and `values` already.
    """
    tokens, heads, head = q.shape
    kv_heads, capacity = keys.shape[:2]
    _prefill_attention[(triton.cdiv(tokens, 64), heads)](
        q, keys, values, out, tokens, cached, capacity, _exp2_scale(head), PDL=pdl, HEADS=heads,
        GROUP=heads // kv_heads, HEAD=head, BLOCK_M=64, BLOCK_N=32, num_warps=8, num_stages=2,
        **_options(pdl),
    )  # fmt: skip


def _exp2_scale(head_dim: int) -> float:
    """The softmax scale for exponentials to base two."""
    return float(head_dim**-0.5 * 1.4426950408889634)


@triton.jit
def _sigmoid_mul(x, qkv, qkv_stride, out, width, PDL: tl.constexpr, HEAD: tl.constexpr,
                 BLOCK: tl.constexpr):  # fmt: skip
    _begin(PDL)
    token, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    keep = column < width
    gate = qkv + token * qkv_stride + (2 * (column // HEAD) + 1) * HEAD + column % HEAD
    factor = tl.sigmoid(tl.load(gate, keep, other=0.0).to(tl.float32))
    value = tl.load(x + token * width + column, keep, other=0.0).to(tl.float32)
    tl.store(out + token * width + column, (value * factor).to(tl.bfloat16), keep)


def sigmoid_mul(x: Tensor, qkv: Tensor, out: Tensor, head_dim: int, *, pdl: bool = False) -> None:
    """`out = x * sigmoid(gate)`, with the gates where `attention_prepare` finds them."""
    tokens, width = out.shape
    block = min(2048, triton.next_power_of_2(width))
    _sigmoid_mul[(tokens, triton.cdiv(width, block))](
        x, qkv, qkv.stride(0), out, width, PDL=pdl, HEAD=head_dim, BLOCK=block, num_warps=8,
        **_options(pdl),
    )  # fmt: skip


# -- the next token -------------------------------------------------------------------------------


@triton.jit
def _argmax_part(
    logits, best, where, size, PDL: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    _begin(PDL)
    part = tl.program_id(0)
    share = tl.cdiv(size, PARTS)
    end = tl.minimum((part + 1) * share, size)
    index = part * share + tl.arange(0, BLOCK)
    value = tl.load(logits + index, index < end, other=float("-inf")).to(tl.float32)
    tl.store(best + part, tl.max(value, 0))
    tl.store(where + part, part * share + tl.argmax(value, 0))


@triton.jit
def _argmax_final(best, where, out, PDL: tl.constexpr, PARTS: tl.constexpr):
    _begin(PDL)
    winner = tl.argmax(tl.load(best + tl.arange(0, PARTS)), 0)
    tl.store(out, tl.load(where + winner).to(tl.int64))


def argmax(logits: Tensor, best: Tensor, where: Tensor, out: Tensor, *, pdl: bool = False) -> None:
    """Index of the largest of all `logits` into `out` [1] int64, the first among equals.

    Two launches: `best` float32 and `where` int32 hold `ARGMAX_PARTS` entries in between.
    """
    size = logits.numel()
    block = triton.next_power_of_2(triton.cdiv(size, ARGMAX_PARTS))
    _argmax_part[(ARGMAX_PARTS,)](
        logits, best, where, size, PDL=pdl, PARTS=ARGMAX_PARTS, BLOCK=block, num_warps=8,
        **_options(pdl),
    )  # fmt: skip
    _argmax_final[(1,)](best, where, out, PDL=pdl, PARTS=ARGMAX_PARTS, num_warps=1, **_options(pdl))
