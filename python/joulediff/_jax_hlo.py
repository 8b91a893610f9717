"""What a compiled computation's kernels are: the instructions of its optimised HLO, and the equations
of the jaxpr that each of them stands for.

XLA keeps with each instruction the name of what it came from, through fusion and duplication. So a jaxpr
is compiled once more with a number in the name of each equation; where that makes the same instructions
as the program's own computation (names are no part of what is optimised) the numbers found in an
instruction are the equations that it computes, all or in part.

The reader below takes the text of XLA's own printer. jaxlib reads HLO but does not hand out its
instructions, and the packages that do are TensorFlow's.
"""

import dataclasses
import itertools
import re

from jax.extend import core

_FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "domain",
                   "partition-id", "replica-id", "opt-barrier", "add-dependency"))
_ENTERED = frozenset(("while", "conditional", "call", "async-start"))  # what runs is in what they call
_MARK = "jd"

_COMPUTATION = re.compile(r"^(ENTRY\s+)?%?([\w.-]+)\s.*->.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT\s+)?%?([\w.-]+) = (.*)$")
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_CALLED = re.compile(r"\b(?:calls|to_apply|body|condition|true_computation|false_computation|"
                     r"branch_computations|called_computations)=(\{[^}]*\}|%?[\w.-]+)")
_OP_NAME = re.compile(r'metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(rf"\b{_MARK}(\d+)\b")


@dataclasses.dataclass
class Instruction:
    """`own`: the equation it is named after; `equations`: those in it and in what it calls."""

    name: str
    opcode: str
    shape: str
    called: list
    own: int | None
    equations: frozenset = frozenset()

    @property
    def kernel(self):
        """What its kernel is called on a GPU."""
        return self.name.replace(".", "_").replace("-", "_")


def _shape_and_rest(text):
    """A shape is one word, or a tuple in brackets."""
    if not text.startswith("("):
        shape, _, rest = text.partition(" ")
        return shape, rest
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:i + 1], text[i + 1:]
    return text, ""


def _instruction(line):
    found = _INSTRUCTION.match(line)
    if not found:
        return None
    shape, rest = _shape_and_rest(found[2])
    opcode = _OPCODE.match(rest)
    if not opcode:
        return None
    called = [name.strip().lstrip("%") for group in _CALLED.findall(rest)
              for name in group.strip("{}").split(",") if name.strip()]
    name = _OP_NAME.search(rest)
    numbers = _NUMBER.findall(name[1]) if name else []
    return Instruction(found[1], opcode[1], shape, called, int(numbers[-1]) if numbers else None)


def read(text):
    """{computation: [Instruction]}, and the name of the one that is entered; None: there is none."""
    computations, entry, here = {}, None, None
    for line in text.splitlines():
        if here is None:
            head = _COMPUTATION.match(line)
            if head:
                here = computations[head[2]] = []
                entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            here = None
        elif (instruction := _instruction(line)) is not None:
            here.append(instruction)
    return computations, entry


def kernels(text):
    """The instructions that do work, in the order of the schedule, loops' bodies once."""
    computations, entry = read(text)
    found, entered = [], set()

    def inside(names, into):
        for name in names:
            for instruction in computations.get(name, ()):
                if instruction.own is not None and instruction.opcode not in _FREE:
                    into.add(instruction.own)
                inside(instruction.called, into)
        return into

    def enter(name):
        if name in entered or name not in computations:
            return
        entered.add(name)
        for instruction in computations[name]:
            if instruction.opcode in _ENTERED:
                for called in instruction.called:
                    enter(called)
            elif instruction.opcode not in _FREE:
                own = {instruction.own} - {None}
                instruction.equations = frozenset(inside(instruction.called, own))
                found.append(instruction)

    if entry is not None:
        enter(entry)
    return found


def same(one, other):
    """Whether two lists of kernels are of one computation, whatever its equations are called."""
    return [(k.opcode, k.shape) for k in one] == [(k.opcode, k.shape) for k in other]


def _is_jaxpr(value):
    return isinstance(value, core.ClosedJaxpr | core.Jaxpr)


class Numbered:
    """A copy of a closed jaxpr whose equations, those of inner jaxprs too, have numbers in their names.

    `number_of` an equation of the copy; `loops`: the numbers of scans and whiles, which stand for the
    work that a loop makes beside its body's.
    """

    def __init__(self, closed):
        self._count = itertools.count(1)
        self._numbers, self._kept = {}, []
        self.loops = set()
        self.jaxpr = self._copy(closed)

    def number_of(self, equation):
        return self._numbers.get(id(equation))

    def _copy(self, jaxpr):
        if getattr(jaxpr, "jaxpr", jaxpr) is not jaxpr:  # before JAX 0.11 a closed one holds an open one
            return core.ClosedJaxpr(self._copy(jaxpr.jaxpr), jaxpr.consts)
        return jaxpr.replace(eqns=[self._equation(e) for e in jaxpr.eqns])

    def _equation(self, equation):
        number = next(self._count)
        params = dict(equation.params)
        if equation.primitive.name != "pallas_call":  # a kernel's own program
            for key, value in params.items():
                if _is_jaxpr(value):
                    params[key] = self._copy(value)
                elif isinstance(value, tuple) and value and all(map(_is_jaxpr, value)):
                    params[key] = tuple(map(self._copy, value))
        if equation.primitive.name in ("scan", "while"):
            self.loops.add(number)
        info = equation.source_info
        info = info.replace(name_stack=info.name_stack.extend(f"{_MARK}{number}"))
        copy = equation.replace(params=params, source_info=info)
        self._numbers[id(copy)] = number
        self._kept.append(copy)
        return copy


def unmarked(name_stack):
    """(the scopes of a name stack without our numbers, whether it is of a backward pass)."""
    scopes, backward = [], False
    for element in name_stack.stack:
        if type(element).__name__ == "Transform":
            backward = backward or element.name == "transpose"
        elif not re.fullmatch(rf"{_MARK}\d+", element.name):
            scopes.append(element.name)
    return scopes, backward
