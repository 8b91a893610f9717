"""What a pass sees of a program of ONNX Runtime."""

import onnxruntime

from joulediff import _abi, _onnx_passes, _onnx_region
from recorder import Library, check

_onnx_region.Sessions(onnxruntime, search=False)


def raise_(error):
    raise error


def session(model, level="ORT_ENABLE_ALL", **options):
    """One of a model's bytes or its path, with a thread."""
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = 1
    made.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    for name, value in options.items():
        setattr(made, name, value)
    return onnxruntime.InferenceSession(model, made, providers=["CPUExecutionProvider"])


def values_of(function):
    """(what function() returns, the Library after one values pass over it)."""
    library = Library()
    values = _onnx_passes.Values(_abi.Recorder(library), raise_)
    values.begin()
    try:
        result = function()
    finally:
        values.end()
        values.close()
        _onnx_passes.forget()
    check(library)
    return result, library


def order_of(function):
    """The Library and the operators after one step of order."""
    library = Library()
    order = _onnx_passes.Order(_abi.Recorder(library), raise_)
    order.begin_step(0, True)
    try:
        function()
    finally:
        order.end()
        order.close()
        _onnx_passes.forget()
    return library, order.operators
