"""What the benchmarks of the recorder share: the processes they run, with the recorder and without,
and the models in them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

MODELS = ("vit", "gpt2", "tiny")


def add_arguments(parser):
    parser.add_argument("--library", default=os.environ.get("JOULEDIFF_LIBRARY"),
                        help="libjoulediff-record.so (default: $JOULEDIFF_LIBRARY)")
    parser.add_argument("--folder", help="where spools are kept for a while (default: $TMPDIR)")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"),
                        help="cpu: try a script out where there is no GPU")


def library(args):
    if args.library and os.path.isfile(args.library):
        return os.path.abspath(args.library)
    sys.exit(f"{sys.argv[0]}: {args.library or 'the recorder'} is not there: "
             "give --library libjoulediff-record.so (cmake --preset recorder builds it)")


def environment(folder=None, library=None):
    """That of a process recorded into the folder, or of one that has no recorder at all."""
    env = {key: value for key, value in os.environ.items()
           if key == "JOULEDIFF_CUPTI" or not key.startswith("JOULEDIFF_")}
    env.pop("CUDA_INJECTION64_PATH", None)
    if folder:
        env |= {"JOULEDIFF_SPOOL": str(folder), "JOULEDIFF_LIBRARY": library,
                "CUDA_INJECTION64_PATH": library}
    return env


class NoKernels(Exception):
    pass


def tell(path, function, *args):
    """In a process of again(): what it found, for the process that started it. Both ways to end it
    raise KeyboardInterrupt, so that a function can tell what it has until then."""
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    try:
        told = function(*args)
    except NoKernels:
        told = None
    pathlib.Path(path).write_text(json.dumps(told))
    return 0


@contextlib.contextmanager
def patient():
    """Who ends this process ends the one that it waits for, which then tells what it has."""
    before = {ending: signal.signal(ending, lambda *_: None)
              for ending in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


@contextlib.contextmanager
def again(arguments, library=None, folder=None):
    """Runs the calling script anew in a process of its own, recorded where there is a library: what
    it told, and the folder of its spools, which is there as long as the `with` block."""
    with tempfile.TemporaryDirectory(prefix="joulediff-bench-", dir=folder) as temporary:
        spools, result = pathlib.Path(temporary, "spools"), pathlib.Path(temporary, "result")
        spools.mkdir()
        command = [sys.executable, os.path.abspath(sys.argv[0]), *arguments, "--result", str(result)]
        with patient():
            done = subprocess.run(command, env=environment(library and spools, library), check=False)
        if done.returncode > 0:
            sys.exit(done.returncode)  # it has said why
        if done.returncode < 0:
            sys.exit(f"{sys.argv[0]}: ended by signal {-done.returncode}: {' '.join(command)}")
        told = json.loads(result.read_text())
        if told is None:
            sys.exit(f"{sys.argv[0]}: the recorder records no kernels here: "
                     + "; ".join(diagnostics(spools)))
        yield told, spools


def recorder():
    """The recorder of this process. Asked before CUDA starts, it leaves the passes to us."""
    from joulediff import _abi

    loaded = _abi.load()
    if loaded is None:
        sys.exit(f"{sys.argv[0]}: {os.environ.get('JOULEDIFF_LIBRARY')} cannot be loaded, or is of "
                 "another version than this checkout")
    return loaded


def begin_kernels(library, which):
    if library.kernels(which) != 1:
        library.flush()
        raise NoKernels


def diagnostics(folder):
    """What the recorder said about itself."""
    import spool

    return sorted({text for one in spool.read_all(folder) for text in one.diagnostics().values()})


def synchronise_of(torch, device):
    if device == "cpu":
        return lambda: None
    if not torch.cuda.is_available():
        sys.exit(f"{sys.argv[0]}: PyTorch sees no GPU here")
    return torch.cuda.synchronize


def machine(device):
    """What figures depend on."""
    import torch

    return {"machine": torch.cuda.get_device_name() if device == "cuda" else "cpu",
            "torch": torch.__version__}


class Workload:
    """A model's forward pass: step() queues it, synchronise() waits for all of it."""

    def __init__(self, model, device):
        import torch

        self.synchronise = synchronise_of(torch, device)
        torch.manual_seed(0)
        self.step = {"vit": _vit, "gpt2": _gpt2, "tiny": _tiny}[model](torch, device)

    def make(self, steps):
        self.synchronise()
        for _ in range(steps):
            self.step()
        self.synchronise()


def _vit(torch, device):
    import timm

    # Under autocast, with weights in fp32, 245 casts a step make the host the bound where it is slow.
    model = timm.create_model("vit_large_patch16_224", pretrained=False).eval()
    model = model.to(device, torch.bfloat16)
    images = torch.randn(64, 3, 224, 224, device=device, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            model(images)
    return step


def _gpt2(torch, device):
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval().to(device)
    tokens = torch.randint(0, 50257, (1, 128), device=device)

    def step():
        with torch.no_grad():
            model(tokens, use_cache=False)
    return step


def _tiny(torch, device):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).to(device)
    batch = torch.randn(8, 64, device=device)

    def step():
        with torch.no_grad():
            model(batch)
    return step


def profiler(device):
    from torch.profiler import ProfilerActivity, profile

    activity = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
    return profile(activities=[activity])


def is_device_event(event):
    """Of a Chrome trace: a kernel, copy or set, as the recorder counts them."""
    return event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")


def profiled_events(profile):
    """The kernels, copies and sets that torch.profiler saw, of its Chrome trace."""
    with tempfile.TemporaryDirectory(prefix="joulediff-bench-") as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return [event for event in json.load(file)["traceEvents"] if is_device_event(event)]
