"""ViT-B/16 with one set of random weights, built by transformers and by timm."""
import torch

import joulediff.torch

IMAGE = 224
CLASSES = 1000


def transformers_model():
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    config = ViTConfig(num_labels=CLASSES, layer_norm_eps=1e-6)
    model = ViTForImageClassification(config).eval()
    # Trained weights are not at hand: spread the random ones so that no layer is near the identity.
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        for name, parameter in sorted(model.named_parameters()):
            spread = 0.02 if parameter.dim() < 2 else 0.04
            parameter.add_(torch.randn(parameter.shape, generator=generator) * spread)
    return model


def timm_model():
    """timm's ViT-B/16 with the weights of transformers_model()."""
    import timm

    source = {name.removeprefix("vit."): value
              for name, value in transformers_model().state_dict().items()}
    target = {
        "cls_token": source["embeddings.cls_token"],
        "pos_embed": source["embeddings.position_embeddings"],
        "patch_embed.proj.weight": source["embeddings.patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": source["embeddings.patch_embeddings.projection.bias"],
        "norm.weight": source["layernorm.weight"],
        "norm.bias": source["layernorm.bias"],
        "head.weight": source["classifier.weight"],
        "head.bias": source["classifier.bias"],
    }
    layer = 0
    while f"layers.{layer}.layernorm_before.weight" in source:
        for kind in ("weight", "bias"):
            take = lambda name: source[f"layers.{layer}.{name}.{kind}"]
            target |= {
                f"blocks.{layer}.norm1.{kind}": take("layernorm_before"),
                f"blocks.{layer}.norm2.{kind}": take("layernorm_after"),
                f"blocks.{layer}.attn.qkv.{kind}": torch.cat(
                    [take(f"attention.{part}_proj") for part in "qkv"]),
                f"blocks.{layer}.attn.proj.{kind}": take("attention.o_proj"),
                f"blocks.{layer}.mlp.fc1.{kind}": take("mlp.fc1"),
                f"blocks.{layer}.mlp.fc2.{kind}": take("mlp.fc2"),
            }
        layer += 1
    model = timm.create_model("vit_base_patch16_224", num_classes=CLASSES).eval()
    model.load_state_dict(target, strict=True)
    return model


def run(model, batch=64, steps=60):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    generator = torch.Generator().manual_seed(2)
    images = torch.randn(batch, 3, IMAGE, IMAGE, generator=generator).to(device)
    joulediff.torch.work("image", batch)
    with torch.inference_mode():
        for _ in joulediff.torch.steps(steps):
            model(images)
