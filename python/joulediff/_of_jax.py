"""What a recording needs of JAX: its passes, its settings, and how to wait for its devices."""

import contextlib

import jax

from joulediff import _jax_settings
from joulediff._jax_passes import Order, Replay, Values, forget
from joulediff._jax_settings import manifest, snapshot, versions

OF_CONTEXT = ()


def synchronize():
    """Waits for all that was launched: there is an array for it, or an effect."""
    if not _jax_settings.started():
        return
    jax.effects_barrier()
    for array in jax.live_arrays():
        with contextlib.suppress(RuntimeError):  # given away, or failed, which the program will hear of
            array.block_until_ready()


def profiler():
    """The name of a profiler that has the device's records, which only one tool can have; or None."""
    from jax._src import profiler as own

    state = getattr(own, "_profile_state", None)
    running = getattr(state, "profile_session", None) is not None
    return "jax.profiler" if running and jax.default_backend() != "cpu" else None


def twin():
    """Where the values come from, if not from the program as it runs."""
    return ("the program is compiled: values come from its equations, evaluated one by one beside it; an operator "
            "of several equations is what one kernel computes")


__all__ = ["OF_CONTEXT", "Order", "Replay", "Values", "forget", "manifest", "profiler", "snapshot", "synchronize",
           "twin", "versions"]
