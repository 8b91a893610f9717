"""A decoder of Llama's shape of transformers and of litgpt, grouped queries, with one set of weights."""

import torch
from common import spread

VOCABULARY, WIDTH, LAYERS, HEADS, GROUPS, MLP, LENGTH = 300, 96, 3, 4, 2, 256, 24


def tokens():
    return torch.randint(0, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(2))


def transformers(attention="sdpa"):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=MLP,
                         num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=GROUPS,
                         rms_norm_eps=1e-6, attn_implementation=attention, use_cache=False)
    return spread(LlamaForCausalLM(config).eval()), tokens()


def eager():
    return transformers("eager")


def litgpt():
    from litgpt import GPT, Config

    source = transformers()[0].state_dict()
    model = GPT(Config(
        n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_query_groups=GROUPS, head_size=WIDTH // HEADS,
        padded_vocab_size=VOCABULARY, vocab_size=VOCABULARY, block_size=LENGTH,
        norm_class_name="RMSNorm", norm_eps=1e-6, mlp_class_name="LLaMAMLP", intermediate_size=MLP,
        rotary_percentage=1.0, parallel_residual=False, bias=False)).eval()
    target = {"lm_head.weight": source["lm_head.weight"],
              "transformer.wte.weight": source["model.embed_tokens.weight"],
              "transformer.ln_f.weight": source["model.norm.weight"]}
    for i in range(LAYERS):
        layer = {name.removeprefix(f"model.layers.{i}."): value for name, value in source.items()}
        target |= {f"transformer.h.{i}.{ours}.weight": value for ours, value in {
            "norm_1": layer["input_layernorm.weight"],
            "norm_2": layer["post_attention_layernorm.weight"],
            "attn.qkv": torch.cat([layer[f"self_attn.{part}_proj.weight"] for part in "qkv"]),
            "attn.proj": layer["self_attn.o_proj.weight"],
            "mlp.fc_1": layer["mlp.gate_proj.weight"], "mlp.fc_2": layer["mlp.up_proj.weight"],
            "mlp.proj": layer["mlp.down_proj.weight"]}.items()}
    model.load_state_dict(target, strict=True)
    return model, tokens()
