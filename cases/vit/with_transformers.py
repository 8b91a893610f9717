"""ViT-B/16 of transformers on a batch of images in float32."""
import sys

from models import run, transformers_model

if __name__ == "__main__":
    run(transformers_model(), *map(int, sys.argv[1:]))
