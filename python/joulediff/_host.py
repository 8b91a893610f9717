"""What a process says of itself and of its host, whatever the framework."""

import importlib.metadata
import os
import platform
import sys

_SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CUDA_INJECTION64_PATH", "PATH", "HOME", "DIR")


def environment(prefixes):
    """{env.NAME: value} of the variables that begin with one of them and hold no secret and no path."""
    return {f"env.{name}": value for name, value in os.environ.items()
            if name.startswith(prefixes) and not any(word in name for word in _SECRET)}


def versions(packages):
    """{version.NAME: text} of the interpreter and of those packages that are installed."""
    result = {"version.python": platform.python_version()}
    for package in packages:
        try:
            result[f"version.{package}"] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return result


RANKS = {  # as torchrun, Open MPI, MPICH and Slurm say it
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"),
    "local_rank": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
    "world_size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"),
}


def process():
    """The `process` fact: which process of the program this is, in words that are the same whenever the
    program runs. Ranks that nobody told are left out.
    """
    result = {"pid": os.getpid(), "parent": os.getppid(), "host": platform.node(),
              "argv": [str(word) for word in getattr(sys, "argv", [])],
              "identity": _identity(), "started": _started()}
    for launcher in zip(*RANKS.values(), strict=True):
        told = {key: os.environ.get(name, "") for key, name in zip(RANKS, launcher, strict=True)}
        if told["rank"].isdigit():
            result.update((key, int(value)) for key, value in told.items() if value.isdigit())
            break
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        result["rank"] = distributed.get_rank()
        result["world_size"] = distributed.get_world_size()
    return result


def _identity():
    """How multiprocessing counts: which of its parent's processes this is, after which its parent was."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    current = multiprocessing.current_process() if multiprocessing is not None else None
    return list(getattr(current, "_identity", ()))


def _started():
    """In ticks since boot; 0: unknown."""
    try:
        with open("/proc/self/stat", encoding="utf-8") as stat:
            return int(stat.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def processor():
    """The manifest's device where the work is on the host."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next(line.split(":", 1)[1].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"
