"""What the programs share."""

import sys
import types

import torch

# Where torchvision was built for CUDA and PyTorch was not, its own operators cannot be loaded: timm,
# transformers and litgpt import it, and no model needs them.
sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("none"))


def spread(model):
    """One set of random weights, the same in each process, with no layer near the identity."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in sorted(model.state_dict().items()):
            if not value.is_floating_point():
                continue
            noise = torch.randn(value.shape, generator=generator)
            if value.dim() > 1:
                value.copy_(noise / value[0].numel() ** 0.5)
            elif name.endswith(("bias", "running_mean")):
                value.copy_(0.1 * noise)
            else:  # of a norm
                value.copy_(1 + 0.1 * noise.abs())
    return model
