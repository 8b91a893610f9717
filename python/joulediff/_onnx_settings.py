"""A snapshot of what can change what ONNX Runtime runs, and of what it runs on. Reading a setting changes nothing.

Where the program has several sessions that differ in a setting, it lists them all, in the order of the sessions.
"""

import onnxruntime

from joulediff import _host, _onnx_region

_ENVIRONMENT = ("ORT_", "ONNX", "OMP_", "KMP_", "GOMP_", "CUDA_", "CUDNN_", "CUBLAS", "NVIDIA_TF32", "TRANSFORMERS_",
                "PYTHONHASHSEED", "TOKENIZERS_PARALLELISM")
_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-genai", "onnxruntime-extensions", "onnx", "onnxscript",
             "optimum", "optimum-onnx", "transformers", "tokenizers", "numpy", "torch")
_OPTIONS = ("graph_optimization_level", "execution_mode", "execution_order", "intra_op_num_threads",
            "inter_op_num_threads", "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse",
            "use_deterministic_compute", "use_per_session_threads")
_ENTRIES = ("disable_prepacking", "use_env_allocators", "set_denormal_as_zero", "disable_quant_qdq",
            "disable_double_qdq_remover", "enable_quant_qdq_cleanup", "disable_aot_function_inlining",
            "enable_gelu_approximation", "enable_cast_chain_elimination", "use_device_allocator_for_initializers",
            "inter_op.allow_spinning", "intra_op.allow_spinning", "intra_op_thread_affinities", "dynamic_block_base",
            "force_spinning_stop", "disable_cpu_ep_fallback", "graph_optimizations_loop_level",
            "qdqisint8allowed", "x64quantprecision", "qdq_matmulnbits_accuracy_level")
_PLAIN = (bool, int, float, str)


def snapshot():
    """{key: value}, both strings."""
    told = [_of_session(session) for session in list(_onnx_region.made)]
    result = {}
    for key in sorted({key for one in told for key in one}):
        values = [one.get(key, "default") for one in told]
        result[f"onnxruntime.{key}"] = values[0] if len(set(values)) == 1 else ",".join(values)
    # As torch calls it, so that a comparison knows how exact products are: on a processor they are float32's.
    if all(one.get("providers") == "CPUExecutionProvider" for one in told):
        result["onnxruntime.float32_matmul_precision"] = "highest"
    result.update(_host.environment(_ENVIRONMENT))
    result.update(versions())
    return result


def _of_session(session):
    options, found = session.get_session_options(), {"providers": " ".join(session.get_providers())}
    for name in _OPTIONS:
        value = getattr(options, name, None)
        if value is not None:
            found[name] = str(value) if isinstance(value, _PLAIN) else str(value).rpartition(".")[2]
    for name in _ENTRIES:
        try:
            found[name] = str(options.get_session_config_entry(f"session.{name}"))
        except Exception:  # noqa: BLE001  it was not set
            continue
    return found


def versions():
    """{version.NAME: text} of the interpreter and of what is installed beside it."""
    return {**_host.versions(_PACKAGES), "version.onnxruntime": onnxruntime.__version__}


def manifest():
    """The `manifest` fact's fields that the framework knows."""
    return {"framework": f"onnxruntime {onnxruntime.__version__}", "device": _host.processor()}
