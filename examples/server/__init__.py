r"""A mini serving engine: an HTTP front, workers with continuous batching, a paged KV cache.

    python -m examples.server                    # replays a trace of requests, prints tokens/s
    python -m examples.server --wasteful sync    # the same tokens, worse

It knows nothing of Joulediff. From the checkout's folder, with or without a GPU:

    joulediff record --pair A.jd B.jd -- \
        python -m examples.server --requests 2000 --wasteful relayout --- \
        python -m examples.server --requests 2000
    joulediff compare A.jd B.jd
"""
