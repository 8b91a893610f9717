"""Joulediff's plug-ins: thin layers between a framework and the recorder's C ABI.

Importing this package imports no framework. `joulediff.torch.steps(n)` marks the steps of a PyTorch
program, `joulediff.jax.steps(n)` those of JAX; `joulediff record` also finds them without any edit.
"""
