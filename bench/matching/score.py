"""Matches against the truth: which tensors of two programs are the same.

The truth of a program is a text file of lines `module  operator  label, label, ...`: what each output of
an operator is called, one line for each call of it in a module, in order. `{i}` stands for a number (and
`{i+1}`, in a label, for the next one), `.` for no module, `-` for an output that no other program has.
Outputs with the same label are the same tensor, within a program and across two.
"""

import collections
import dataclasses
import re

_NUMBER = re.compile(r"\{(\w)(?:\+(\d+))?\}")


class Unannotated(Exception):
    pass


@dataclasses.dataclass
class Line:
    module: re.Pattern
    operator: str
    labels: list


def read(text):
    """The lines of a truth file."""
    lines = []
    for number, row in enumerate(text.splitlines(), 1):
        row = row.partition("#")[0].strip()
        if not row:
            continue
        columns = row.split(None, 2)
        if len(columns) != 3:
            raise ValueError(f"line {number}: not `module operator labels`: {row}")
        module = "" if columns[0] == "." else columns[0]
        pattern = "".join(f"(?P<{part}>\\d+)" if i % 3 == 1 else re.escape(part) if i % 3 == 0 else ""
                          for i, part in enumerate(_NUMBER.split(module)) if part is not None)
        lines.append(Line(re.compile(pattern), columns[1],
                          [label.strip() for label in columns[2].split(",")]))
    return lines


def short(name):
    """aten.add.Tensor: add; jax.add: add."""
    return name.split(".")[1] if "." in name else name


def labels_of(operators, lines):
    """{class: its labels}, of operators as bench/matching/matching prints them. Each computed class has
    one at least; a "-" counts as one of its own."""
    calls, labels, missing = collections.Counter(), collections.defaultdict(set), []
    seen = set()
    for operator in operators:
        if all(number is None for number in operator["classes"]):
            continue  # constants have no lines
        name = short(operator["name"])
        fresh = {c for c in operator["classes"] if c is not None} - seen
        seen |= fresh
        found = [(line, match) for line in lines if line.operator == name
                 and (match := line.module.fullmatch(operator["module"]))]
        which = calls[operator["module"], name]
        if which < len(found):
            calls[operator["module"], name] += 1
            line, match = found[which]
            for number, label in zip(operator["classes"], line.labels):
                if number is not None:
                    labels[number].add(_filled(label, match, operator))
        elif fresh and not operator["view"]:
            missing.append(f"{operator['module'] or '.'}  {name}")
    if missing:
        raise Unannotated("no line for: " + ", ".join(missing[:5]) + (
            f" and {len(missing) - 5} more" if len(missing) > 5 else ""))
    return dict(labels)


def _filled(label, match, operator):
    if label == "-":
        return f"- {operator['module']} {operator['name']}"
    return _NUMBER.sub(lambda m: str(int(match[m[1]]) + int(m[2] or 0)), label)


@dataclasses.dataclass
class Score:
    right: int  # anchors of tensors that are the same
    wrong: list  # [(labels of A, labels of B)]
    missed: list  # labels that both programs have and no anchor has

    @property
    def precision(self):
        return self.right / max(1, self.right + len(self.wrong))

    @property
    def recall(self):
        return self.right / max(1, self.right + len(self.missed))

    @property
    def f1(self):
        return 2 * self.right / max(1, 2 * self.right + len(self.wrong) + len(self.missed))


def score(anchors, a, b):
    """a, b: {class: labels}. A tensor that no line names (a slice that an operator reads of another) is
    not judged."""
    common = set().union(*a.values()) & set().union(*b.values())
    right, wrong, found = 0, [], set()
    for of_a, of_b in anchors:
        ours, theirs = a.get(of_a, set()), b.get(of_b, set())
        if ours & theirs:
            right += 1
            found |= ours | theirs
        elif ours and theirs:
            wrong.append((sorted(ours), sorted(theirs)))
    return Score(right, wrong, sorted(common - found))
