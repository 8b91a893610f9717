"""A snapshot of every switch that can change what the framework runs, and of what it runs on.

Reading a switch must change nothing and say nothing: warnings are caught, and a switch that cannot be
read (another version, another platform) is left out.
"""

import types
import warnings

import torch

from joulediff import _host

_CALLS = (
    "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
    "get_default_dtype", "get_num_threads", "get_num_interop_threads", "is_grad_enabled",
    "is_inference_mode_enabled", "is_anomaly_enabled",
    "backends.cpu.get_cpu_capability", "backends.mha.get_fastpath_enabled",
    "backends.cuda.flash_sdp_enabled", "backends.cuda.mem_efficient_sdp_enabled",
    "backends.cuda.math_sdp_enabled", "backends.cuda.cudnn_sdp_enabled",
    "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
    "backends.cuda.preferred_linalg_library", "backends.cuda.preferred_blas_library",
    "backends.cuda.preferred_rocm_fa_library",
)
_MATMUL = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "fp32_precision",
           "allow_bf16_reduced_precision_reduction", "allow_fp16_accumulation")
_ENVIRONMENT = ("CUDA_", "CUBLAS", "CUDNN_", "TORCH", "PYTORCH_", "OMP_", "MKL_", "NVIDIA_TF32",
                "NCCL_", "ATEN_", "TRITON_", "KMP_", "GOMP_", "DNNL_", "ONEDNN_", "TF32_",
                "TRANSFORMERS_", "HF_HUB_ENABLE", "PYTHONHASHSEED", "TOKENIZERS_PARALLELISM")
_PACKAGES = ("torch", "triton", "transformers", "timm", "numpy", "accelerate", "diffusers",
             "flash_attn", "xformers", "vllm", "torchvision", "deepspeed", "bitsandbytes")
_PLAIN = (bool, int, float, str)


def _read(root, path):
    """The value at a dotted path, called if it is a function; None where there is none."""
    value = root
    try:
        for name in path.split("."):
            value = getattr(value, name)
        return value() if callable(value) else value
    except Exception:  # noqa: BLE001  a switch of another version
        return None


def _text(value):
    if isinstance(value, _PLAIN):
        return str(value)
    return None if value is None or isinstance(value, list | tuple) else str(value).split(".")[-1]


def _switches():
    """Dotted names below torch of the properties of torch.backends' modules."""
    yield from (f"backends.cuda.matmul.{name}" for name in _MATMUL)
    for name, module in vars(torch.backends).items():
        if not isinstance(module, types.ModuleType):
            continue
        for switch, kind in vars(type(module)).items():
            if not switch.startswith("_") and hasattr(kind, "__get__") and not callable(kind):
                yield f"backends.{name}.{switch}"
        for inner in ("conv", "rnn", "matmul"):
            if name in ("cudnn", "mkldnn") and hasattr(module, inner):
                yield f"backends.{name}.{inner}.fp32_precision"


def snapshot():
    """{key: value}, both strings."""
    result = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in (*_CALLS, *_switches()):
            result[f"torch.{path.replace('get_', '').replace('is_grad', 'grad')}"] = _read(torch, path)
        result["torch.float32_matmul_precision"] = _read(torch, "get_float32_matmul_precision")
        for device in ("cuda", "cpu"):
            try:
                on = torch.is_autocast_enabled(device)
                dtype = torch.get_autocast_dtype(device) if on else None
            except Exception:  # noqa: BLE001
                on = dtype = None
            result[f"torch.autocast.{device}"] = on
            result[f"torch.autocast.{device}.dtype"] = dtype
    result.update(_host.environment(_ENVIRONMENT))
    result.update(versions())
    return {key: text for key, value in result.items() if (text := _text(value)) is not None}


def versions():
    """{version.NAME: text} of the interpreter and of what is installed beside it."""
    result = _host.versions(_PACKAGES)
    result["version.torch"] = torch.__version__
    if torch.version.cuda:
        result["version.cuda"] = torch.version.cuda
    cudnn = torch.backends.cudnn.version() if torch.cuda.is_available() else None
    if cudnn:
        result["version.cudnn"] = str(cudnn)
    return {key: str(value) for key, value in result.items()}


def of_model(module):
    """{model.KEY: value} of an outermost module: its mode, and its config where it has one."""
    result = {"model.class": type(module).__name__, "model.training": str(module.training)}
    config = getattr(module, "config", None)
    if not hasattr(config, "to_diff_dict"):
        return result
    try:
        entries = dict(config.to_diff_dict())
        entries["attn_implementation"] = getattr(config, "_attn_implementation", None)
    except Exception:  # noqa: BLE001  somebody else's config
        return result
    for key, value in entries.items():
        if isinstance(value, _PLAIN):
            result[f"model.config.{key}"] = str(value)
    return result


def manifest():
    """The `manifest` fact's fields that the framework knows."""
    result = {"framework": f"torch {torch.__version__}", "device": _host.processor()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        result["device"] = properties.name
        uuid = getattr(properties, "uuid", None)
        if uuid is not None:
            text = str(uuid)
            result["device_uuid"] = text if text.startswith("GPU-") else f"GPU-{text}"
    return result
