"""The input that both variants normalise over its channels: (16, 256, 512, 128) in float32."""
import torch

import joulediff.torch

SHAPE = (16, 256, 512, 128)
EPSILON = 1e-6


def inputs(device):
    generator = torch.Generator(device=device).manual_seed(0)
    x = torch.randn(SHAPE, generator=generator, device=device)
    weight = torch.randn(SHAPE[1], generator=generator, device=device)
    bias = torch.randn(SHAPE[1], generator=generator, device=device)
    return x, weight, bias


def run(norm, steps=300):
    x, weight, bias = inputs("cuda")
    joulediff.torch.work("image", SHAPE[0])
    with torch.inference_mode():
        for _ in joulediff.torch.steps(steps):
            norm(x, weight, bias)
