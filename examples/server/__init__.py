"""A mini serving engine: an HTTP front, workers with continuous batching, a paged KV cache.

    python -m examples.server                    # replays a trace of requests, prints tokens/s
    python -m examples.server --wasteful sync    # the same tokens, worse

It knows nothing of Joulediff:

    joulediff record -o A.jd -- python -m examples.server
    joulediff record -o A.jd --region examples.server.model:Model.forward -- python -m examples.server
"""
