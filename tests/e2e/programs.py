"""Small programs to record: python programs.py KIND [SEED]."""

import os
import sys

import torch


def gpt2(activation, seed=0):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    size = dict(n_layer=2, n_head=2, n_embd=64, vocab_size=512, n_positions=64)
    config = GPT2Config(**size, activation_function=activation, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 512, (4, 64))
    return model, tokens


def forwards(activation, count, at_step=lambda step: None, seed=0):
    model, tokens = gpt2(activation, seed)
    with torch.no_grad():
        for step in range(count):
            at_step(step)
            model(tokens)


def crash(step):
    if step == 12:
        os.abort()


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "crash":
        forwards("gelu_new", 1000, crash)
    elif kind == "endless":
        forwards("gelu_new", 1_000_000)
    else:
        forwards(kind, 400, seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
