"""What a pass sees of a program of JAX."""

import jax

from joulediff import _abi
from joulediff._jax_passes import Pass, Values
from recorder import Library, check


def raise_(error):
    raise error


def values_of(function):
    """(what function() returns, the Library after one values pass over it)."""
    library = Library()
    values = Values(_abi.Recorder(library), raise_)
    values.begin()
    try:
        result = function()
        jax.block_until_ready(result)
    finally:
        values.end()
    check(library)
    return result, library


class Piecewise(Pass):
    """Runs the operators in their order, each from what those before it made."""

    keep = True

    def __init__(self):
        super().__init__(_abi.Recorder(Library()), raise_)
        self.made, self.operators = {}, []

    def watch(self, operators, call):
        self.operators += operators
        for operator in operators:
            # What no operator made comes from outside; what one did must have been made already.
            arrays = [self.made[v] if v.maker is not None else v.array for v in operator.inputs]
            results = jax.jit(operator.function())(*arrays)
            self.made.update(zip(operator.outputs, results, strict=True))


def piecewise(function):
    """(what function() returns, [(by the twin, by the operators alone)], operators)."""
    watching = Piecewise()
    watching.begin()
    try:
        result = function()
    finally:
        watching.end()
    pairs = [(v.array, array) for v, array in watching.made.items()]
    return result, pairs, watching.operators
