"""A transformer of JAX for the tests, with its weights and a training step."""

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, WIDTH, HEADS, TOKENS, WORDS, BATCH = 2, 64, 4, 16, 128, 2


def weights():
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.standard_normal(shape) * 0.1).astype(np.float32)

    d = WIDTH
    blocks = [{"ln1": 1 + normal(d), "b1": normal(d), "qkv": normal(d, 3 * d), "bqkv": normal(3 * d),
               "proj": normal(d, d), "bproj": normal(d), "ln2": 1 + normal(d), "b2": normal(d),
               "up": normal(d, 4 * d), "bup": normal(4 * d), "down": normal(4 * d, d), "bdown": normal(d)}
              for _ in range(LAYERS)]
    return {"wte": normal(WORDS, d), "wpe": normal(TOKENS, d), "blocks": blocks, "lnf": 1 + normal(d), "bf": normal(d)}


def tokens():
    return np.random.default_rng(1).integers(0, WORDS, (BATCH, TOKENS)).astype(np.int32)


def norm(x, gain, bias):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def attention(x, p):
    def heads(t):
        return t.reshape(BATCH, TOKENS, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    q, k, v = jnp.split(x @ p["qkv"] + p["bqkv"], 3, axis=-1)
    scores = jnp.einsum("bhqd,bhkd->bhqk", heads(q), heads(k)) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), heads(v))
    return mixed.transpose(0, 2, 1, 3).reshape(BATCH, TOKENS, WIDTH) @ p["proj"] + p["bproj"]


def transformer(params, ids):
    """A GPT-2 with exact GELU; jax_pair.py has it in PyTorch."""
    x = params["wte"][ids] + params["wpe"][: ids.shape[1]]
    for p in params["blocks"]:
        x = x + attention(norm(x, p["ln1"], p["b1"]), p)
        h = norm(x, p["ln2"], p["b2"]) @ p["up"] + p["bup"]
        x = x + jax.nn.gelu(h, approximate=False) @ p["down"] + p["bdown"]
    return norm(x, params["lnf"], params["bf"]) @ params["wte"].T


def loss(params, ids):
    logits = transformer(params, ids)[:, :-1]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), ids[:, 1:, None], -1)
    return -picked.mean()


def train_step(params, momentum, ids):
    value, gradients = jax.value_and_grad(loss)(params, ids)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value
