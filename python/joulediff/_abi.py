"""The recorder's C ABI (include/joulediff/record.h) by ctypes.

Nothing here raises once the library is loaded: the recorder is noexcept and switches itself off.
"""

import atexit
import ctypes
import functools
import json
import os
import sys
import traceback

WARMUP, VALUES, ORDER, TRACE, REPLAY = range(5)
COMPUTED, INPUT, PARAMETER, CONSTANT = range(4)
MAX_DIMS = 8
_LONGEST = 600  # of a diagnostic


class Fingerprint(ctypes.Structure):
    """jd_fingerprint; docs/fingerprint.md defines each field."""

    _fields_ = [
        *[(n, ctypes.c_uint64) for n in ("count", "nan", "positive_infinity", "negative_infinity")],
        *[(n, ctypes.c_double) for n in ("mean", "mean_abs", "rms", "l4", "m3", "min", "max")],
        *[(n, ctypes.c_uint32 * 2) for n in ("own", "bf16", "fp16")],
        ("dtype", ctypes.c_uint8),
        ("distinct", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 6),
    ]


class TensorInfo(ctypes.Structure):
    """jd_tensor_info: shape and stride in elements, `dims` of them."""

    _fields_ = [
        ("id", ctypes.c_uint64),
        ("storage", ctypes.c_uint64),
        ("version", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("dims", ctypes.c_uint32),
        ("role", ctypes.c_uint32),
        ("shape", ctypes.c_int64 * MAX_DIMS),
        ("stride", ctypes.c_int64 * MAX_DIMS),
        ("fingerprint", Fingerprint),
        ("sample_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("sample", ctypes.POINTER(ctypes.c_float)),
    ]


_U32, _U64, _TEXT = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_IDS = ctypes.POINTER(ctypes.c_uint64)
_SIGNATURES = {
    "jd_active": (ctypes.c_int, []),
    "jd_now": (_U64, []),
    "jd_fact": (None, [_TEXT, _TEXT]),
    "jd_step": (None, [_U32, _U32, _U64, _U64, _TEXT]),
    "jd_tensor": (None, [ctypes.POINTER(TensorInfo)]),
    "jd_observe": (None, [ctypes.POINTER(TensorInfo), ctypes.c_void_p]),
    "jd_fingerprint_of": (None, [ctypes.POINTER(Fingerprint), ctypes.c_void_p, _U64]),
    "jd_operator": (None, [_U32, _TEXT, _IDS, _U32, _IDS, _U32, _TEXT]),
    "jd_operator_begin": (None, [_U32, _U32, _TEXT]),
    "jd_operator_end": (None, []),
    "jd_operator_took": (None, [_U32, _U32, _TEXT, _U64, _U64]),
    "jd_kernels": (ctypes.c_int, [_U32]),
    "jd_operator_seconds": (ctypes.c_double, [_U32]),
    "jd_replay": (None, [_TEXT, _U64, _U64, _U64]),
    "jd_flush": (None, []),
}
ABI = 2


class Recorder:
    """The loaded library. The C functions that need no conversion are its attributes."""

    def __init__(self, library):
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("jd_"), function)
        self._raw_fact, self.fact = self.fact, self._fact
        self._raw_operator, self.operator = self.operator, self._operator
        self._raw_step, self.step = self.step, self._step

    def _fact(self, topic, **fields):
        self._raw_fact(topic.encode(), json.dumps(fields).encode())

    def diagnostic(self, severity, rule, message):
        """severity: note, warning or error; rule: a short stable name, told as record.RULE; message: one
        sentence without its full stop, as all the reports have them.
        """
        self.fact("diagnostic", severity=severity, rule=f"record.{rule}", message=message[:_LONGEST])

    def failed(self, error):
        """A mistake of ours: told with its place, for whoever mends it."""
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" at {os.path.basename(where[0].filename)}:{where[0].lineno}" if where else ""
        self.diagnostic("error", "recording_failed", "the recorder made a mistake, and records no more in this "
                        f"process: {type(error).__name__}: {error}{place}")

    def _step(self, which, index, begin, end, inputs=None):
        """inputs: the text of the shapes of the step's inputs; None: unknown."""
        self._raw_step(which, index, begin, end, inputs.encode() if inputs else None)

    def _operator(self, index, name, inputs, outputs, facts):
        """inputs, outputs: sequences of value ids; facts: a JSON-able dict."""
        ins, outs = (_U64 * len(inputs))(*inputs), (_U64 * len(outputs))(*outputs)
        text = json.dumps(facts).encode()
        self._raw_operator(index, name.encode(), ins, len(inputs), outs, len(outputs), text)


@functools.cache
def _tell(what):
    """Once, on stderr: there is no recorder to tell it."""
    print(f"joulediff: {what}", file=sys.stderr)


def load():
    """The recorder, or None where the environment asks for no recording or it cannot be had."""
    path = os.environ.get("JOULEDIFF_LIBRARY")
    if not os.environ.get("JOULEDIFF_SPOOL") or not path:
        return None
    try:
        recorder = Recorder(ctypes.CDLL(path))
    except (OSError, AttributeError) as error:
        _tell(f"cannot load {path}: {error}; this process is not recorded")
        return None
    if recorder.active() != ABI:
        return None
    # Ctrl-C, and --stop, end Python by the signal itself: no exit handler of C runs then.
    atexit.register(recorder.flush)
    return recorder
