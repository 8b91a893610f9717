"""Replays a trace of requests against the server, and prints how many tokens a second it made."""

import argparse
import concurrent.futures
import json
import random
import sys
import time
import urllib.error
import urllib.request
import zlib

from examples.server.front import Front
from examples.server.model import SIZES
from examples.server.worker import WASTEFUL, Options


def trace(config, requests, rate, seed):
    """(seconds from the start, prompt, tokens wanted) of each request."""
    dice, at, made = random.Random(seed), 0.0, []
    for _ in range(requests):
        at += dice.expovariate(rate) if rate else 0.0
        prompt = [dice.randrange(config.vocabulary) for _ in range(dice.randint(4, config.longest // 3))]
        made.append((at, prompt, dice.randint(8, config.longest // 3)))
    return made


def send(port, asked):
    body = json.dumps(asked).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body) as answer:
        return json.load(answer)


def replay(port, begin, requests, rate):
    """The tokens of each request: all asked for in one message, or each when it is due."""
    asked = [{"prompt": prompt, "tokens": wanted} for _, prompt, wanted in requests]
    if not rate:
        return [answer["tokens"] for answer in send(port, asked)]

    def when_due(at, one):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        return send(port, one)["tokens"]

    with concurrent.futures.ThreadPoolExecutor(64) as clients:
        return list(clients.map(when_due, [at for at, _, _ in requests], asked))


def main():
    parser = argparse.ArgumentParser(prog="python -m examples.server")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.0, help="arrivals a second; 0: all in one "
                        "message, whose batches do not depend on the clock")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8, help="sequences that run at once")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the requests")
    parser.add_argument("--no-graphs", action="store_true", help="no CUDA graphs")
    parser.add_argument("--wasteful", choices=WASTEFUL, default="",
                        help="; ".join(f"{name}: {what}" for name, what in WASTEFUL.items()))
    given = parser.parse_args()
    options = Options(given.size, given.seed, given.batch, not given.no_graphs, given.wasteful)
    asked = trace(SIZES[given.size], given.requests, given.rate, given.seed)
    with Front(options, given.workers) as front:
        begin = time.monotonic()
        try:
            got = replay(front.port, begin, asked, given.rate)
        except urllib.error.HTTPError as error:
            sys.exit(f"the server failed: {error.read().decode()}")
        seconds = time.monotonic() - begin
    tokens = sum(map(len, got))
    print(f"{len(got)} requests, {tokens} tokens, checksum {zlib.crc32(json.dumps(got).encode()):08x}")
    print(f"{seconds:.2f} s, {tokens / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
