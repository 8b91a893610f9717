"""Which equations of a computation run together: what its compiled form says, for the recorder.

The groups of a computation are the instructions of its HLO. An equation that no instruction names is
moved to those of its readers: a reshape, or what was folded into them. One that several instructions name
was computed several times.
"""

import collections
import dataclasses

from joulediff import _jax_hlo, _jax_twin


@dataclasses.dataclass
class Group:
    """Kernels with the same equations; `own`: the equation that they are named after."""

    kernels: list
    equations: frozenset
    own: int | None


class Plan:
    """groups_of an equation by its number; `numbers` numbers the equations of `jaxpr`, which the twin
    evaluates in place of the program's. Without HLO each equation is by itself.
    """

    def __init__(self, closed, numbers=None, kernels=()):
        self.numbers = numbers
        self.jaxpr = numbers.jaxpr if numbers is not None else closed
        self.groups = []
        self.loop_kernels = {}  # number of a loop -> what its bookkeeping runs
        self._members = collections.defaultdict(set)
        if numbers is not None:
            self._read(kernels)
            self._adopt(readers(numbers))

    def groups_of(self, number):
        return self._members.get(number, frozenset())

    def owner_of(self, number):
        """The group that makes the equation's value for others: the one named after it, else the first."""
        members = sorted(self.groups_of(number))
        named = [g for g in members if self.groups[g].own == number]
        return (named[-1:] or members or [None])[0]

    def _read(self, kernels):
        by_equations = {}
        for kernel in kernels:
            work = kernel.equations - self.numbers.loops
            if not work:
                for loop in sorted(kernel.equations)[-1:]:
                    self.loop_kernels.setdefault(loop, []).append(kernel.kernel)
                continue
            group = by_equations.get(work)
            if group is None:
                group = by_equations[work] = Group([], work, None)
                self.groups.append(group)
            group.kernels.append(kernel.kernel)
            group.own = kernel.own if kernel.own in work else group.own
        for i, group in enumerate(self.groups):
            for number in group.equations:
                self._members[number].add(i)

    def _adopt(self, read_by):
        """Equations without an instruction, from the last to the first; loops read what comes later."""
        unnamed = sorted((n for n in read_by if n not in self._members), reverse=True)
        for _ in range(3):
            for number in unnamed:
                found = set().union(*(self._members.get(r, ()) for r in read_by[number]))
                if found:
                    self._members[number] = found


def readers(numbers):
    """{number: the numbers of the equations that read what it makes}, through calls, loops and branches."""
    found = collections.defaultdict(set)

    def walk(closed, sources):
        jaxpr, env = closed.jaxpr, {}
        env.update(zip(jaxpr.invars, sources, strict=True))

        def of(atom):
            return env.get(atom, frozenset()) if not hasattr(atom, "val") else frozenset()

        for equation in jaxpr.eqns:
            ins = [of(atom) for atom in equation.invars]
            outs = enter(equation, ins)
            if outs is None:
                number = numbers.number_of(equation)
                for source in frozenset().union(*ins):
                    found[source].add(number)
                found[number].update(())
                outs = [frozenset((number,))] * len(equation.outvars)
            env.update(zip(equation.outvars, outs, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def enter(equation, ins):
        name, p = equation.primitive.name, equation.params
        if name in _jax_twin.SAME and len(ins) == len(equation.outvars):
            return ins
        if name in _jax_twin.CALLS and _jax_twin.can_enter(equation):
            return walk(_jax_twin.closed(p[_jax_twin.CALLS[name]]), ins)
        if name == "scan":
            n, carried = _jax_twin.scan_counts(equation)
            m = n + carried
            carry = ins[n:m]
            for _ in range(2):
                outs = walk(_jax_twin.closed(p["jaxpr"]), [*ins[:n], *carry, *[frozenset()] * (len(ins) - m)])
                carry = [a | b for a, b in zip(carry, outs, strict=False)]
            return [*carry, *[frozenset()] * (len(equation.outvars) - len(carry))]
        if name == "while":
            n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
            carry = ins[m:]
            for _ in range(2):
                walk(_jax_twin.closed(p["cond_jaxpr"]), [*ins[:n], *carry])
                outs = walk(_jax_twin.closed(p["body_jaxpr"]), [*ins[n:m], *carry])
                carry = [a | b for a, b in zip(carry, outs, strict=True)]
            return carry
        if name == "cond":
            ways = [walk(_jax_twin.closed(branch), ins[1:]) for branch in p["branches"]]
            return [frozenset().union(*way) for way in zip(*ways, strict=True)]
        return None

    walk(numbers.jaxpr, [frozenset()] * len(numbers.jaxpr.jaxpr.invars))
    return found


def plan(closed, text, compile_again):
    """The Plan of a closed jaxpr whose compiled form is the HLO `text`; compile_again(closed): its HLO."""
    if text is None or _jax_twin.size(closed) < 2:
        return Plan(closed)
    kernels = _jax_hlo.kernels(text)
    numbers = _jax_hlo.Numbered(closed)
    marked = _jax_hlo.kernels(compile_again(numbers.jaxpr))
    if not _jax_hlo.same(kernels, marked):
        return Plan(closed)
    for kernel, twin in zip(kernels, marked, strict=True):
        kernel.own, kernel.equations = twin.own, twin.equations
    return Plan(closed, numbers, kernels)
