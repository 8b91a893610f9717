"""Where in the program an equation comes from.

JAX keeps with each equation the frames under which it was traced, once, whoever calls the function later.
Of each function that was traced by itself the frames from its start are true; below them stand those of
the equation that calls it, and at the end those of the call that we see.
"""

import functools
import os
import sys

from jax._src import source_info_util

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_JIT = os.path.join("jax", "_src", "pjit.py")
_DEEPEST = 128


def _users(file):
    return not file.startswith((_OWN, "<frozen")) and source_info_util.is_user_filename(file)


def current():
    """((file, line, function), ...) of the program's frames, innermost first."""
    frames, frame = [], sys._getframe(1)
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        if _users(code.co_filename):
            frames.append((code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return tuple(frames)


@functools.lru_cache(maxsize=65536)
def _line(code, last):
    return source_info_util.raw_frame_to_frame(code, last).start_line


def _segments(traceback):
    """The user's frames of a traceback, cut where a function was traced by itself."""
    segments = [[]]
    codes, lasts = traceback.raw_frames() if traceback is not None else ((), ())
    for code, last in zip(codes, lasts, strict=True):
        if code.co_filename.endswith(_JIT):
            if segments[-1] or len(segments) == 1:
                segments.append([])
        elif _users(code.co_filename):
            segments[-1].append((code.co_filename, _line(code, last),
                                 getattr(code, "co_qualname", code.co_name)))
    return segments


def of_program(closed):
    """Whether a jaxpr is of a function of the program ("step at /home/me/train.py:12"), not of JAX itself."""
    info = getattr(closed.jaxpr.debug_info, "func_src_info", None) or ""
    return _users(info.rpartition(" at ")[2].rpartition(":")[0])


def frames_of(places, call):
    """places: (source info, of_program), innermost first; call: the frames of the computation's call."""
    frames = []
    for info, users in places:
        first, *others = _segments(info.traceback)
        if not first and users:  # JAX's own functions are put in line, as if traced by themselves
            first = [f for f in next((s for s in others if s), []) if f not in call]
        frames += first
    return (*frames, *call)[:_DEEPEST]
