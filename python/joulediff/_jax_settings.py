"""A snapshot of what can change what JAX compiles and runs, and of what it runs on.

Reading a setting changes nothing: a backend that the program has not started is not started here.
"""

import jax
from jax._src import xla_bridge

from joulediff import _host

_ENVIRONMENT = ("XLA_", "JAX_", "LIBTPU_", "TF_CPP_", "TF_XLA", "TF_GPU", "TF_CUDNN", "CUDA_", "CUBLAS", "CUDNN_",
                "NVIDIA_TF32", "NCCL_", "OMP_", "TRANSFORMERS_", "PYTHONHASHSEED", "TOKENIZERS_PARALLELISM")
_PACKAGES = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "flax", "optax", "equinox",
             "dm-haiku", "orbax-checkpoint", "transformers", "numpy", "ml_dtypes", "chex", "einops")
_PLAIN = (bool, int, float, str)
_NOT_OURS = ("cache_dir", "dump", "coordination", "log", "path")  # folders, and what computes nothing


def started():
    """Whether the program has made JAX look for its devices."""
    return bool(getattr(xla_bridge, "_backends", None))


def snapshot():
    """{key: value}, both strings."""
    result = {}
    for name, value in sorted(jax.config.values.items()):
        if isinstance(value, _PLAIN) and not any(word in name for word in _NOT_OURS):
            result[f"jax.{name.removeprefix('jax_')}"] = str(value)
    # As torch calls it, so that a comparison knows how exact products are.
    precision = jax.config.jax_default_matmul_precision
    result["jax.float32_matmul_precision"] = _precision(precision)
    if started():
        result["jax.backend"] = jax.default_backend()
        result["jax.device_count"] = str(jax.local_device_count())
        result["jax.platform_version"] = jax.devices()[0].client.platform_version.split("\n")[0]
    result.update(_host.environment(_ENVIRONMENT))
    result.update(versions())
    return result


def _precision(setting):
    """highest, high or medium: 24, 11 and 8 bits of the operands."""
    known = {None: "default", "float32": "highest", "F32_F32_F32": "highest", "tensorfloat32": "high",
             "TF32_TF32_F32": "high", "bfloat16": "medium", "BF16_BF16_F32": "medium", "bfloat16_3x": "high",
             "BF16_BF16_F32_X3": "high"}
    text = known.get(setting, str(setting))
    if text != "default" or not started():
        return text
    # What the backend takes where nothing is asked for: float32 on a processor, TF32 on a GPU that has it.
    return {"cpu": "highest", "gpu": "high", "cuda": "high", "tpu": "medium"}.get(jax.default_backend(), text)


def versions():
    """{version.NAME: text} of the interpreter and of what is installed beside it."""
    return {**_host.versions(_PACKAGES), "version.jax": jax.__version__}


def manifest():
    """The `manifest` fact's fields that the framework knows."""
    result = {"framework": f"jax {jax.__version__}", "device": _host.processor()}
    if started() and jax.default_backend() != "cpu":
        result["device"] = jax.devices()[0].device_kind
    return result
