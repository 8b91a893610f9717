"""GPT-2 small prefill in float32, with the activation function given on the command line."""
import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import joulediff.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("activation", choices=["gelu_new", "gelu_pytorch_tanh"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    config = GPT2Config(activation_function=options.activation, n_layer=options.layers,
                        n_positions=options.length)
    model = GPT2LMHeadModel(config).eval().to(device)
    tokens = torch.randint(0, config.vocab_size, (options.batch, options.length)).to(device)

    joulediff.torch.work("token", options.batch * options.length)
    with torch.inference_mode():
        for _ in joulediff.torch.steps(options.steps):
            model(tokens, use_cache=False, logits_to_keep=1)


if __name__ == "__main__":
    main()
