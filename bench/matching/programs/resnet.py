"""A ResNet-18 of three libraries with one set of weights, in inference."""

import torch
from common import spread

CLASSES = 10


def images():
    return torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(2))


def torchvision():
    import torchvision

    return spread(torchvision.models.resnet18(num_classes=CLASSES).eval()), images()


def timm():
    import timm

    model = timm.create_model("resnet18", num_classes=CLASSES).eval()
    model.load_state_dict(torchvision()[0].state_dict(), strict=True)
    return model, images()


def transformers():
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2],
                          layer_type="basic", num_labels=CLASSES)
    model = ResNetForImageClassification(config).eval()
    source = torchvision()[0].state_dict()
    model.load_state_dict({name: source[named_there(name)] for name in model.state_dict()}, strict=True)
    return model, images()


def named_there(name):
    """The name in torchvision of a weight of transformers."""
    parts = name.split(".")
    kind = parts[-1]
    if name.startswith("classifier"):
        return f"fc.{kind}"
    one = {"convolution": "conv", "normalization": "bn"}[parts[-2]]
    if "embedder" in parts:
        return f"{one}1.{kind}"
    stage, block = int(parts[3]) + 1, parts[5]
    if "shortcut" in parts:
        return f"layer{stage}.{block}.downsample.{0 if one == 'conv' else 1}.{kind}"
    return f"layer{stage}.{block}.{one}{int(parts[7]) + 1}.{kind}"
