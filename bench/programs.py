#!/usr/bin/env python3
"""The programs that closure.py, no_difference.py and bursts.py measure: forward passes in bf16 with
random weights, made on the device, so that a process begins soon.

    joulediff record -o gpt2.jd -- python bench/programs.py --model gpt2 --batch 4
    python bench/programs.py --model gpt2 --batch 4 --repeats 5 --told windows.json

The second way has no recorder in it: each repeat is a fork of a process that has imported all it needs
and never touched the device, so it is a fresh process to the device without the seconds of a start. It
tells when its steps began and ended; who started it reads the meter.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

LENGTH = 1024  # tokens
GPT2 = {}
VIT = {}
LLAMA = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
         "tie_word_embeddings": True}  # 1.2 billion parameters


def gpt2(torch, batch):
    """GPT-2 small, a prefill."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return prefill(torch, GPT2LMHeadModel(GPT2Config(**GPT2)), batch)


def llama(torch, batch):
    """A decoder of Llama's shape, a prefill."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return prefill(torch, LlamaForCausalLM(LlamaConfig(**LLAMA)), batch)


def prefill(torch, model, batch):
    model.eval()
    tokens = torch.randint(0, model.config.vocab_size, (batch, LENGTH))
    return lambda: model(tokens, use_cache=False, logits_to_keep=1), ("token", batch * LENGTH)


def vit(torch, batch):
    """ViT-B/16."""
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(ViTConfig(num_labels=1000, **VIT)).eval()
    images = torch.randn(batch, 3, model.config.image_size, model.config.image_size)
    return lambda: model(images), ("image", batch)


def mlp(torch, batch):
    """A feed-forward block: matrix products, and operators that wait for memory."""
    width = 1024
    inside = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width),
                                 torch.nn.GELU(), torch.nn.Linear(4 * width, width))
    x = torch.randn(batch * LENGTH, width)
    return lambda: x + inside(x), ("token", batch * LENGTH)


def pulse(torch, batch):
    """Matrix products alone, about 20 ms of an H200: what draws most."""
    size = 8192
    weights = [torch.randn(size, size) / size**0.5 for _ in range(batch)]
    x = torch.randn(size, size)

    def step():
        y = x
        for weight in weights:
            y = y @ weight
        return y
    return step, ("product", batch)


def tiny(torch, batch):
    """Tries a script out where there is no GPU."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
    x = torch.randn(batch, 64)
    return lambda: model(x), ("sample", batch)


MODELS = {"gpt2": gpt2, "vit": vit, "llama": llama, "mlp": mlp, "pulse": pulse, "tiny": tiny}


class Program:
    """make() makes a step and, where there are gaps, waits for it and pauses."""

    def __init__(self, model, batch, device, gap=None):
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            sys.exit(f"{sys.argv[0]}: PyTorch sees no GPU here")
        torch.manual_seed(0)
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device(device):
                self.step, self.work = MODELS[model](torch, batch)
        finally:
            torch.set_default_dtype(before)
        self.inference = torch.inference_mode
        self.synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
        self.gap, self.lot = gap, random.Random(0)

    def make(self):
        self.step()
        if self.gap:
            self.synchronise()
            time.sleep(self.lot.uniform(*self.gap))

    def run_for(self, seconds):
        """How many steps that was."""
        begin, steps = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            self.make()
            steps += 1
        self.synchronise()
        return steps


def program(args):
    return Program(args.model, args.batch, args.device, args.gap)


def recorded(args):
    import joulediff.torch

    one = program(args)
    joulediff.torch.work(*one.work)
    with one.inference():
        one.run_for(args.warm)
        for _ in joulediff.torch.steps(1):
            one.make()


def repeat(args):
    """One repeat: when its steps began and ended, how many, and what processor time they took."""
    one = program(args)
    with one.inference():
        one.run_for(args.warm)
        begin, processor = time.monotonic_ns(), time.process_time()
        steps = one.run_for(args.seconds)
        return {"begin": begin, "end": time.monotonic_ns(), "steps": steps,
                "processor_seconds": time.process_time() - processor}


def forked(function, *args):
    """The function's result, of a child; None where the child failed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                json.dump(function(*args), out)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None


def repeats(args):
    # Whether there is a GPU is asked at import by some; CUDA itself would not survive the fork.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    if args.model in ("gpt2", "vit", "llama"):
        import transformers  # noqa: F401
        from transformers import (GPT2LMHeadModel, LlamaForCausalLM,  # noqa: F401
                                  ViTForImageClassification)
    import torch  # noqa: F401

    windows = [forked(repeat, args) for _ in range(args.repeats)] if args.repeats > 1 else [
        repeat(args)]
    if None in windows:
        return 1
    pathlib.Path(args.told).write_text(json.dumps(windows))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--gap", type=float, nargs=2, help="seconds to pause after each step, drawn "
                        "by lot between these two")
    parser.add_argument("--warm", type=float, default=1, help="seconds of steps before all else")
    parser.add_argument("--repeats", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2, help="of a repeat")
    parser.add_argument("--told", help="file for the windows of the repeats")
    args = parser.parse_args()
    if args.repeats:
        return repeats(args)
    return recorded(args)


if __name__ == "__main__":
    sys.exit(main())
