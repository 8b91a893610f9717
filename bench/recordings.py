"""What the scripts share that judge recordings: they make them with the program, unattended and within
a bound of time, keep them, and read what the program says of them."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import run_file

HERE = pathlib.Path(__file__).resolve().parent
LONGEST = 240  # seconds of a recording; budgets are far below
GATE_CODES = (1, 6)  # of compare: the report is printed all the same
UNKNOWN = "-"


def add_arguments(parser, folder):
    parser.add_argument("--program", default=os.environ.get("JOULEDIFF", "build/release/bin/joulediff"),
                        help="joulediff (default: $JOULEDIFF, else build/release/bin/joulediff)")
    parser.add_argument("--folder", default=folder, help="where run files are kept; those that are "
                        f"there are not recorded again (default: {folder})")
    parser.add_argument("--minutes", type=float, default=60,
                        help="begin no recording after so many (default: 60)")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"),
                        help="cpu: try the script out where there is no GPU")


class Recordings:
    def __init__(self, args):
        self.program = pathlib.Path(args.program).resolve()
        if not os.access(self.program, os.X_OK):
            sys.exit(f"{sys.argv[0]}: {args.program} is not there: give --program joulediff "
                     "(cmake --preset release builds it)")
        self.device, self.folder = args.device, pathlib.Path(args.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._end = time.monotonic() + 60 * args.minutes
        self._lengths = []  # of the recordings made, seconds

    @property
    def late(self):
        """Whether another recording, as long as those before, would end too late."""
        return time.monotonic() + max(self._lengths, default=0.0) > self._end

    def path(self, name):
        return self.folder / name

    def one(self, name, words, options):
        """The path of a recording of programs.py with these words; None where there is none."""
        path = self.path(name + ".jd")
        return path if self._made([path], ["-o", str(path)], [words], options) else None

    def pair(self, name, words, options):
        """The paths of a program recorded against itself."""
        a, b = self.path(name + "-a.jd"), self.path(name + "-b.jd")
        return (a, b) if self._made([a, b], ["--pair", str(a), str(b)], [words] * 2,
                                    options) else None

    def command(self, words):
        return [sys.executable, str(HERE / "programs.py"), "--device", self.device, *words]

    def _made(self, paths, outputs, programs, options):
        if all(path.exists() for path in paths):
            return True
        name = " ".join(path.name for path in paths)
        if self.late:
            print(f"{name}: not recorded, no time is left", flush=True)
            return False
        command = [str(self.program), "record", "--force", "--quiet", *outputs, *options, "--"]
        for n, words in enumerate(programs):
            command += (["---"] if n else []) + self.command(words)
        began = time.monotonic()
        status, trouble = bounded(command)
        if status:
            print(f"{name}: record ended with {status}: {trouble.strip()[-1000:]}\n"
                  f"  {shlex.join(command)}", flush=True)
            return False
        self._lengths.append(time.monotonic() - began)
        print(f"{name}: {self._lengths[-1]:.0f} s", flush=True)
        return True

    def show(self, path):
        """What `show --json` says, or None; with the clocks that only the file has."""
        told = self._told(["show", str(path), "--json", "--operators", "1000"])
        if told is None or told["energy"] is None:
            print(f"{path.name}: no energy is known", flush=True)
            return None
        return told | {"conditions": run_file.conditions(path)}

    def compare(self, a, b, *options):
        return self._told(["compare", str(a), str(b), "--json", *options])

    def _told(self, words):
        done = subprocess.run([str(self.program), *words], capture_output=True, text=True,
                              check=False)
        if done.returncode in (0, *GATE_CODES):
            return json.loads(done.stdout)
        print(f"{' '.join(words)}: ended with {done.returncode}: {done.stderr.strip()}", flush=True)
        return None


def bounded(command):
    """Its exit status and what it said on stderr. One that hangs is asked to end: nobody attends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            trouble = process.communicate(timeout=LONGEST)[1]
        except subprocess.TimeoutExpired:
            process.terminate()  # the launcher ends the program, and keeps what it has recorded
            return -1, f"took longer than {LONGEST:g} s. " + process.communicate()[1]
        return process.returncode, trouble


def closure(shown):
    """Of a step: what the counter measured, what the lines of the ledger come to without sight of it
    (None where one of them is not known), and what is left of the measured, signed and relative."""
    energy = shown["energy"]
    lines = {line["line"]: line["joules"] for line in shown["ledger"][energy["boundary"]]}
    left = lines.pop("unattributed")
    unknown = sorted(name for name, joules in lines.items() if joules is None)
    # The host's model knows no more than its operators.
    whole = not unknown or energy["boundary"] == "host" and "operators" not in unknown
    measured = energy["joules"]
    return {"measured": measured, "seconds": energy["seconds"], "boundary": energy["boundary"],
            "meter": energy["meter"], "standing": energy["standing"], "lines": lines,
            "unknown_lines": unknown, "predicted": measured - left if whole else None,
            "unattributed": left / measured if whole and measured else None,
            "recognised": energy["recognised"]}


def share(value, digits=1, signed=False):
    return UNKNOWN if value is None else f"{100 * value:{'+' if signed else ''}.{digits}f} %"


def joules(value):
    return UNKNOWN if value is None else f"{value:.4g}"


def clocks(conditions):
    """The SM clock and the share of time held back by a limit, of the trace and of the replay."""
    for which in ("trace", "replay"):
        mhz = conditions[which]["sm_mhz"]
        yield UNKNOWN if mhz is None else f"{mhz:.0f} MHz"
        yield share(conditions[which]["held_back"], 0)


def within(value, limit):
    return value is not None and abs(value) <= limit


def warnings(shown):
    return [f"{one['message']} [{one['rule']}]" for one in shown["diagnostics"]
            if one["severity"] != "note"]


class Rows:
    """Figures of one recording after the other: each is printed and kept as soon as it is there, since the
    machine may be gone before the last one is.
    """

    def __init__(self, args, name, table):
        self._args, self._name, self._table = args, name, table
        self.rows = []

    def add(self, row):
        self.rows.append(row)
        head, *lines = self._table(self.rows)
        print(*([head] if len(self.rows) == 1 else []), lines[-1], sep="\n", flush=True)
        keep(self._args, {self._name: self.rows})


def keep(args, figures):
    if args.json:
        path = pathlib.Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(json.dumps(figures, indent=1) + "\n")
        part.replace(path)


def conclude(args, figures, claims, boundaries):
    """Prints the claims, keeps the figures; the exit status."""
    if boundaries and boundaries != {"board"}:
        print(f"The meter was of the {', '.join(sorted(boundaries))}: this tries the script out, its "
              "figures tell nothing of a GPU.")
    for claim, holds in claims:
        print(f"{'yes' if holds else 'NO':<4}{claim}", flush=True)
    keep(args, {**figures, "claims": dict(claims)})
    return 0 if all(holds for _, holds in claims) else 1
