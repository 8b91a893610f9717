"""GPT-2 of transformers, with its attention in one operator or spelt out, and with its activation in one
operator; and the same model in JAX. One set of weights."""

import torch
from common import spread

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH = 300, 96, 3, 4, 24


def tokens():
    return torch.randint(0, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(2))


def model(attention="sdpa", activation="gelu_new"):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS,
                        n_head=HEADS, activation_function=activation, attn_implementation=attention,
                        use_cache=False, tie_word_embeddings=False)
    return spread(GPT2LMHeadModel(config).eval())


def transformers():
    return model(), tokens()


def eager():
    return model("eager"), tokens()


def fused():
    """The activation is one operator."""
    return model(activation="gelu_pytorch_tanh"), tokens()


def erf():
    """The activation that the others' tanh approximates."""
    return model(activation="gelu"), tokens()


def jax():
    import jax
    from jax import numpy as jnp

    weights = {name: jnp.asarray(value.numpy()) for name, value in model().state_dict().items()}

    def norm(x, name):
        with jax.named_scope("norm"):
            mean = x.mean(-1, keepdims=True)
            variance = ((x - mean) ** 2).mean(-1, keepdims=True)
            scale, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
            return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias

    def linear(x, name):
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attention(x, name):
        with jax.named_scope("attention"):
            batch, length, width = x.shape
            q, k, v = (part.reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
                       for part in jnp.split(linear(x, f"{name}.c_attn"), 3, axis=-1))
            scores = q @ k.transpose(0, 1, 3, 2) / (width // HEADS) ** 0.5
            past = jnp.tril(jnp.ones((length, length), bool))
            mixed = jax.nn.softmax(jnp.where(past, scores, -jnp.inf), axis=-1) @ v
            return linear(mixed.transpose(0, 2, 1, 3).reshape(batch, length, width), f"{name}.c_proj")

    def mlp(x, name):
        with jax.named_scope("mlp"):
            up = linear(x, f"{name}.c_fc")
            return linear(jax.nn.gelu(up, approximate=True), f"{name}.c_proj")

    @jax.jit
    def forward(ids):
        x = weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][: ids.shape[1]]
        for i in range(LAYERS):
            with jax.named_scope(f"h.{i}"):
                name = f"transformer.h.{i}"
                x = x + attention(norm(x, f"{name}.ln_1"), f"{name}.attn")
                x = x + mlp(norm(x, f"{name}.ln_2"), f"{name}.mlp")
        return norm(x, "transformer.ln_f") @ weights["lm_head.weight"].T

    return lambda ids: forward(ids).block_until_ready(), jnp.asarray(tokens().numpy())
