"""A ViT of three libraries with one set of weights."""

import torch
from common import spread

IMAGE, PATCH, WIDTH, HEADS, LAYERS, MLP, CLASSES = 64, 16, 96, 3, 3, 384, 10


def images():
    return torch.randn(4, 3, IMAGE, IMAGE, generator=torch.Generator().manual_seed(2))


def transformers():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(image_size=IMAGE, patch_size=PATCH, hidden_size=WIDTH, num_attention_heads=HEADS,
                       num_hidden_layers=LAYERS, intermediate_size=MLP, num_labels=CLASSES,
                       layer_norm_eps=1e-6)
    return spread(ViTForImageClassification(config).eval()), images()


def weights():
    model, _ = transformers()
    return {name.removeprefix("vit."): value for name, value in model.state_dict().items()}


def qkv(source, layer, kind):
    return torch.cat([source[f"layers.{layer}.attention.{part}_proj.{kind}"] for part in "qkv"])


def timm():
    import timm

    model = timm.models.vision_transformer.VisionTransformer(
        img_size=IMAGE, patch_size=PATCH, embed_dim=WIDTH, depth=LAYERS, num_heads=HEADS,
        num_classes=CLASSES).eval()
    source = weights()
    target = {
        "cls_token": source["embeddings.cls_token"],
        "pos_embed": source["embeddings.position_embeddings"],
        **both("patch_embed.proj", source, "embeddings.patch_embeddings.projection"),
        **both("norm", source, "layernorm"), **both("head", source, "classifier"),
    }
    for i in range(LAYERS):
        for ours, theirs in (("norm1", "layernorm_before"), ("norm2", "layernorm_after"),
                             ("attn.proj", "attention.o_proj"), ("mlp.fc1", "mlp.fc1"),
                             ("mlp.fc2", "mlp.fc2")):
            target |= both(f"blocks.{i}.{ours}", source, f"layers.{i}.{theirs}")
        for kind in ("weight", "bias"):
            target[f"blocks.{i}.attn.qkv.{kind}"] = qkv(source, i, kind)
    model.load_state_dict(target, strict=True)
    return model, images()


def torchvision():
    import torchvision

    model = torchvision.models.VisionTransformer(
        image_size=IMAGE, patch_size=PATCH, num_layers=LAYERS, num_heads=HEADS, hidden_dim=WIDTH,
        mlp_dim=MLP, num_classes=CLASSES).eval()
    source = weights()
    target = {
        "class_token": source["embeddings.cls_token"],
        "encoder.pos_embedding": source["embeddings.position_embeddings"],
        **both("conv_proj", source, "embeddings.patch_embeddings.projection"),
        **both("encoder.ln", source, "layernorm"), **both("heads.head", source, "classifier"),
    }
    for i in range(LAYERS):
        layer = f"encoder.layers.encoder_layer_{i}"
        for ours, theirs in (("ln_1", "layernorm_before"), ("ln_2", "layernorm_after"),
                             ("self_attention.out_proj", "attention.o_proj"), ("mlp.0", "mlp.fc1"),
                             ("mlp.3", "mlp.fc2")):
            target |= both(f"{layer}.{ours}", source, f"layers.{i}.{theirs}")
        for kind in ("weight", "bias"):
            target[f"{layer}.self_attention.in_proj_{kind}"] = qkv(source, i, kind)
    model.load_state_dict(target, strict=True)
    return model, images()


def both(ours, source, theirs):
    return {f"{ours}.{kind}": source[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
