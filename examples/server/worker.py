"""The worker process: takes requests from a queue, runs the model, puts answers in another."""

import dataclasses
import queue

import torch

from examples.server.cache import Cache
from examples.server.model import SIZES, Batch, Model
from examples.server.scheduler import Scheduler, Sequence

WASTEFUL = {
    "sync": "asks the device for each sequence's token by itself",
    "relayout": "lays out the whole KV cache anew in every layer",
    "unbatched": "runs one sequence at a time",
}


@dataclasses.dataclass(frozen=True)
class Options:
    size: str
    seed: int = 0
    most: int = 8  # sequences at once
    graphs: bool = True  # where there is a GPU
    wasteful: str = ""


class Worker:
    def __init__(self, options):
        self._options, config = options, SIZES[options.size]
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.bfloat16 if self._device == "cuda" else torch.float32
        if self._device == "cpu":
            torch.set_num_threads(1)
        caches = [Cache(config, self._device, dtype, options.wasteful == "relayout")
                  for _ in range(config.layers)]
        self._model = Model(config, caches, options.seed).to(self._device, dtype).eval()
        most = 1 if options.wasteful == "unbatched" else options.most
        self.scheduler = Scheduler(config, most)
        if self._device == "cuda" and options.graphs:
            sizes = {Scheduler.bucket(n + 1) for n in range(most)}
            self._model.capture([self._moved(self.scheduler.empty(n)) for n in sizes])

    def _moved(self, batch):
        return Batch(*(t.to(self._device, non_blocking=True) for t in batch.tensors()))

    def step(self):
        """One step of the model; the sequences that it has finished."""
        sequences, batch = self.scheduler.next()
        logits = self._model(self._moved(batch))
        return self.scheduler.append(sequences, self._sample(logits, len(sequences)))

    def _sample(self, logits, count):
        if self._options.wasteful == "sync":
            return [logits[i].argmax().item() for i in range(count)]
        return logits.argmax(-1)[:count].tolist()


@torch.inference_mode()
def serve(requests, answers, options):
    """requests: lists of (id, prompt, wanted), None at the end; answers: (id, tokens or what was wrong)."""
    worker = Worker(options)
    answers.put(None)  # ready
    while True:
        try:
            while (together := requests.get(block=not worker.scheduler)) is not None:
                for request in together:
                    try:
                        worker.scheduler.add(Sequence(*request))
                    except ValueError as error:
                        answers.put((request[0], str(error)))
            return
        except queue.Empty:
            for sequence in worker.step():
                answers.put((sequence.id, sequence.tokens))
