"""Call paths as a run has them: files by portable names, each distinct path told once."""

import os
import sys
import sysconfig

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DEEPEST = 128
_STANDARD = os.path.join(sysconfig.get_paths()["stdlib"], "")
_HERE = os.path.join(os.getcwd(), "")


def portable(file):
    """The file's name as it is on any machine.

    site-packages/... for packages, lib/pythonX.Y/... for the standard library, relative to the folder
    that the program was started in for what lies below it; as it is for all else.
    """
    for folder in ("site-packages", "dist-packages"):
        package = file.rfind(f"/{folder}/")
        if package >= 0:
            return file[package + 1:]
    if file.startswith(_STANDARD):
        return f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/{file[len(_STANDARD):]}"
    return file.removeprefix(_HERE)


def call_path(without=()):
    """[(code, line)], innermost first, without our frames and those of files that begin with one of these."""
    frames, frame = [], sys._getframe(1)
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        if not code.co_filename.startswith((_OWN, *without)):
            frames.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


class Stacks:
    """Each distinct call path, reported once as a `stack` fact and named by a number."""

    def __init__(self, recorder):
        self._recorder, self._ids = recorder, {}

    def id_of(self, path):
        """path: [(code, line)], innermost first."""
        if path not in self._ids:
            self._tell(path, [(code.co_filename, line, getattr(code, "co_qualname", code.co_name))
                              for code, line in path])
        return self._ids[path]

    def id_of_frames(self, frames):
        """frames: a tuple of (file, line, function), innermost first."""
        if frames not in self._ids:
            self._tell(frames, frames)
        return self._ids[frames]

    def _tell(self, path, frames):
        self._ids[path] = len(self._ids)
        self._recorder.fact("stack", id=self._ids[path],
                            frames=[[portable(file), line, name] for file, line, name in frames])
