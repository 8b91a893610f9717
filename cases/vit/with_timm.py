"""ViT-B/16 of timm with the weights of with_transformers.py, on the same images."""
import sys

from models import run, timm_model

if __name__ == "__main__":
    run(timm_model(), *map(int, sys.argv[1:]))
