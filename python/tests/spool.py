"""Reads what the recorder wrote (src/spool/spool.h, docs/recording.md)."""

import json
import pathlib
import struct


KERNEL, COPY, SET = range(3)


def records(path):
    """(type, payload) of each whole record."""
    with open(path, "rb") as file:
        assert file.read(16)[:8] == b"JDSPOOL1"
        while len(head := file.read(8)) == 8:
            length, kind = struct.unpack("<II", head)
            body = file.read(length + 4)
            if len(body) < length + 4:
                return
            yield kind, body[:length]


def numbers(payload):
    """Varints: seven bits a byte, lowest first, the top bit set in all but the last."""
    number = shift = 0
    for byte in payload:
        if byte >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        elif shift:
            yield number | byte << shift
            number = shift = 0
        else:
            yield byte


def kernels_of(payload):
    """(name id, pass, kind, nanoseconds) of each kernel of a record."""
    shapes, take = [], numbers(payload).__next__
    while (shape := next_or_none(take)) is not None:
        if shape == len(shapes):
            name, which, *_, kind = [take() for _ in range(11)]
            shapes.append((name, which, kind))
        _, duration, _ = take(), take(), take()  # between distances of start and correlation
        yield *shapes[shape], duration


def next_or_none(take):
    try:
        return take()
    except StopIteration:
        return None


class Kernels:
    """What ran on the device, of all spools of a folder: `of(pass)` and `dropped`."""

    def __init__(self, folder):
        self.dropped, self._sums = 0, {}
        for path in sorted(pathlib.Path(folder).glob("*.spool")):
            self._read(path)

    def _read(self, path):
        names, sums = {}, {}
        for kind, payload in records(path):
            if kind == 6:
                (index,) = struct.unpack_from("<I", payload)
                names[index] = text(payload, 4)[0]
            elif kind == 7:
                for name, which, what, ns in kernels_of(payload):
                    if (entry := sums.get((which, what, name))) is None:
                        entry = sums[which, what, name] = [0, 0]
                    entry[0] += 1
                    entry[1] += ns
            elif kind == 10:
                self.dropped += struct.unpack("<Q", payload)[0]
        for (which, what, name), (count, ns) in sums.items():
            entry = self._sums.setdefault((which, what, names[name]), [0, 0])
            entry[0] += count
            entry[1] += ns

    def of(self, which):
        """{(kind, name): (count, nanoseconds)} of a pass."""
        return {key[1:]: tuple(sums) for key, sums in self._sums.items() if key[0] == which}


def text(payload, at):
    (n,) = struct.unpack_from("<I", payload, at)
    return payload[at + 4 : at + 4 + n].decode(), at + 4 + n


class Spool:
    """One process's spool: facts, steps (pass, index, begin, end), operators {index: name}, replays.

    inputs: the text of each step's inputs, None where unknown.
    """

    def __init__(self, path):
        self.facts, self.steps, self.operators, self.replays = [], [], {}, []
        self.tensors = self.times = 0
        self.inputs, texts = [], {0: None}
        for kind, payload in records(path):
            if kind == 1:
                topic, at = text(payload, 0)
                self.facts.append((topic, json.loads(text(payload, at)[0])))
            elif kind == 2:
                *step, inputs, _ = struct.unpack("<IIQQII", payload)
                self.steps.append(tuple(step))
                self.inputs.append(texts[inputs])
            elif kind == 12:
                (number,) = struct.unpack_from("<I", payload)
                texts[number] = text(payload, 4)[0]
            elif kind == 3:
                self.tensors += 1
            elif kind == 4:
                (index,) = struct.unpack_from("<I", payload)
                self.operators[index] = text(payload, 4)[0]
            elif kind == 5:
                self.times += len(payload) // 24
            elif kind == 9:
                begin, end, count = struct.unpack_from("<QQQ", payload)
                self.replays.append((text(payload, 24)[0], begin, end, count))

    def passes(self):
        return [step[0] for step in self.steps]

    def diagnostics(self):
        return {f["rule"]: f["message"] for topic, f in self.facts if topic == "diagnostic"}

    def process(self):
        """The `process` fact; {} where the process made no step."""
        return next((fields for topic, fields in self.facts if topic == "process"), {})

    def settings(self):
        return {f["key"]: f["value"] for topic, f in self.facts if topic == "setting"}


def read_all(folder):
    return [Spool(path) for path in sorted(pathlib.Path(folder).glob("*.spool"))]
