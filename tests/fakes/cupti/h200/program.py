"""The program whose buffers lie here: CUPTI of CUDA 13.0 on an H200, torch 2.11.

    JOULEDIFF_PASSES=order,trace JOULEDIFF_STEPS=3 JOULEDIFF_CUPTI_RAW=RAW JOULEDIFF_SPOOL=SPOOL \\
      JOULEDIFF_LIBRARY=LIB CUDA_INJECTION64_PATH=LIB PYTHONPATH=python python program.py

leaves four buffers in RAW: two of the warm-up, order, trace. A step is ten things on the device: a copy
to it, a matrix product and a GELU, a fill, an addition, a clamp on another stream, product and GELU
again out of a CUDA graph, a sum, and its copy to the host, for which the host waits.
"""

import torch

import joulediff.torch

torch.manual_seed(0)
layer = torch.nn.Linear(64, 64).cuda().eval()
x, y = torch.randn(8, 64), torch.randn(8, 64, device="cuda")
other = torch.cuda.Stream()


def body(inputs):
    return torch.nn.functional.gelu(layer(inputs))


with torch.no_grad():
    with torch.cuda.stream(other):
        body(y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body(y)
    for _ in joulediff.torch.steps(8):
        z = body(x.cuda())
        torch.zeros(1024, device="cuda").add_(1)
        with torch.cuda.stream(other):
            torch.relu(y)
        graph.replay()
        z.sum().item()
