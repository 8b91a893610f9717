"""A network of onnx_programs.py in PyTorch or in ONNX Runtime: `onnx_pair.py torch NAME OUT.npy`,
`onnx_pair.py LEVEL NAME OUT.npy MODEL.onnx`.

It writes what the first step gives and goes on until it is ended.
"""

import itertools
import sys

import numpy as np


def run_torch(name, path):
    import torch
    from onnx_programs import network

    model, x = network(name)
    with torch.no_grad():
        for i in itertools.count():
            out = model(x)
            if i == 0:
                np.save(path, out.numpy())


def run_onnx(level, path, model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    x = np.load(model + ".npy")
    for i in itertools.count():
        [out] = session.run(None, {"x": x})
        if i == 0:
            np.save(path, out)


if __name__ == "__main__":
    how, name, path, *model = sys.argv[1:]
    if how == "torch":
        run_torch(name, path)
    else:
        run_onnx(how, path, *model)
