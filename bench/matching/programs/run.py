#!/usr/bin/env python3
"""A program of the bench: run.py FAMILY.NAME [float32 | bfloat16]. It goes on until it is ended."""

import importlib
import sys

import torch


def main():
    program, *dtype = sys.argv[1:]
    family, _, name = program.partition(".")
    torch.manual_seed(0)
    model, inputs = getattr(importlib.import_module(family), name)()
    if dtype == ["bfloat16"]:
        model = model.to(torch.bfloat16)
        inputs = inputs.to(torch.bfloat16) if inputs.is_floating_point() else inputs
    with torch.no_grad():
        while True:
            model(inputs)


if __name__ == "__main__":
    main()
