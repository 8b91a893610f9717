"""The front process: HTTP in, the workers' queues out.

POST / with {"prompt": [1, 2, 3], "tokens": 8} answers {"tokens": [...]}. A list of such is answered by a
list, and joins the queue as a whole: what is batched with what is then the same each time.
"""

import concurrent.futures
import http.server
import itertools
import json
import multiprocessing
import queue
import threading

from examples.server.worker import serve


class Front:
    """Workers and an HTTP server at `port`, between __enter__ and __exit__."""

    def __init__(self, options, workers):
        context = multiprocessing.get_context("spawn")
        self._answers, self._requests = context.Queue(), [context.Queue() for _ in range(workers)]
        self._workers = [context.Process(target=serve, args=(requests, self._answers, options))
                         for requests in self._requests]
        self._ids, self._pending = itertools.count(), {}
        self._ready, self._over = threading.Semaphore(0), threading.Event()

    def __enter__(self):
        for worker in self._workers:
            worker.start()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()
        for _ in self._workers:
            self._ready.acquire()
        handler = type("Handler", (Handler,), {"front": self})
        self._server = Server(("127.0.0.1", 0), handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        for requests in self._requests:
            requests.put(None)
        for worker in self._workers:
            worker.join()
        self._over.set()
        self._listener.join()

    def generate(self, asked):
        """The tokens for each (prompt, tokens wanted); RuntimeError where there is nobody to make them."""
        numbers = [next(self._ids) for _ in asked]
        futures = [self._pending.setdefault(n, concurrent.futures.Future()) for n in numbers]
        if self._over.is_set():
            raise RuntimeError("a worker has ended")
        for place, requests in enumerate(self._requests):
            mine = [(n, *one) for n, one in zip(numbers, asked, strict=True)
                    if n % len(self._requests) == place]
            if mine:
                requests.put(mine)
        return [future.result() for future in futures]

    def _listen(self):
        while not self._over.is_set():
            try:
                answer = self._answers.get(timeout=0.2)
            except queue.Empty:
                if any(worker.exitcode for worker in self._workers):
                    self._fail()
                continue
            if answer is None:
                self._ready.release()
            elif isinstance(answer[1], str):
                self._pending.pop(answer[0]).set_exception(RuntimeError(answer[1]))
            else:
                self._pending.pop(answer[0]).set_result(answer[1])

    def _fail(self):
        self._over.set()
        for _ in self._workers:
            self._ready.release()
        for future in self._pending.values():
            future.set_exception(RuntimeError("a worker has ended"))


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024  # connections that wait for accept()


class Handler(http.server.BaseHTTPRequestHandler):
    front = None

    def do_POST(self):  # noqa: N802
        try:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            several = asked if isinstance(asked, list) else [asked]
            made = self.front.generate([(one["prompt"], int(one["tokens"])) for one in several])
            answers = [{"tokens": tokens} for tokens in made]
            self._answer(200, answers if several is asked else answers[0])
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            self._answer(500, {"error": str(error)})

    def _answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
