"""Programs whose work is done by processes that others start: python workers.py KIND.

They know nothing of Joulediff. start_methods: multiprocessing's three; preforked: a child that goes on
where its parent has begun; ranks: under torchrun; daemon: a worker that leaves its parent's session.
"""

import multiprocessing
import os
import sys

import torch

STEPS = 14


def work(steps=STEPS):
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.ones(4, 8)
    with torch.no_grad():
        for _ in range(steps):
            x = model(x)
    return model


def start_methods():
    for method in ("fork", "forkserver", "spawn"):
        worker = multiprocessing.get_context(method).Process(target=work)
        worker.start()
        worker.join()
        print(method, worker.pid, worker.exitcode)


def preforked():
    model = work(1)
    child = os.fork()
    if child == 0:
        with torch.no_grad():
            for _ in range(STEPS):
                model(torch.ones(4, 8))
        os._exit(0)
    print("child", child, os.waitpid(child, 0)[1])


def ranks():
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    model, x = torch.nn.Linear(8, 8), torch.ones(4, 8)
    with torch.no_grad():
        for _ in range(STEPS):
            y = model(x)
            torch.distributed.all_reduce(y)
    torch.distributed.destroy_process_group()


def daemon():
    """As a node's daemon starts workers: a process in between, a new session, an environment of its own."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(read)
            os.set_inheritable(write, True)
            own = dict(os.environ, WORKER_ID="7")
            os.execve(sys.executable, [sys.executable, __file__, "work"], own)
        os._exit(0)
    os.close(write)
    os.wait()
    os.read(read, 1)  # until the worker is gone


if __name__ == "__main__":
    {"start_methods": start_methods, "preforked": preforked, "ranks": ranks, "daemon": daemon,
     "work": work}[sys.argv[1]]()
