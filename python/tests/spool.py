"""Reads what the recorder wrote (src/spool/spool.h, docs/recording.md)."""

import json
import pathlib
import struct


def records(path):
    """(type, payload) of each whole record."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"JDSPOOL1"
    at = 16
    while at + 12 <= len(data):
        length, kind = struct.unpack_from("<II", data, at)
        if at + 12 + length > len(data):
            return
        yield kind, data[at + 8 : at + 8 + length]
        at += 12 + length


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
