#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: run the kernels of tests/kernels on devices and compare the bytes.

    live_kernels.py --kiln KILN                       soft against cuda:0, and
                                                      that against what it
                                                      answered before
    live_kernels.py --kiln KILN --record FILE         ... and write what the
                                                      GPU answered
    live_kernels.py --kiln KILN --recorded FILE       soft against that file:
                                                      needs no GPU
    live_kernels.py --kiln KILN --memcheck            cuda:0 under
                                                      compute-sanitizer

How a kernel is run, and what may differ, stands in its own first comment
(tests/kernels/README.md). Everything is equal to the bit, any NaN equal to any
NaN, save the buffers that an `approx` or `open` line names. What the command
cannot start (cooperative launches, variables set by name, structs) is left to
live_kernel_suite, which runs every kernel. Runs that are left out are counted
by reason. Exit code 77 without a GPU.
"""
import argparse
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"
MASK = (1 << 64) - 1
SKIP = 77
LIMIT_S = "60"
MEMCHECK = ("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99")
FORMAT = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i",
          "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}


class Run:
    """One `run` directive and the lines that belong to it."""

    def __init__(self, file, entry, number):
        self.file, self.entry, self.number = file, entry, number
        self.grid = self.block = None
        self.shared, self.parameters = 0, []
        self.approx, self.fails, self.prints = {}, None, 0
        self.needs = ""  # what the command cannot say
        self.awaits = ""  # what the software device has not

    @property
    def name(self):
        return f"{self.file.stem}.{self.entry}.{self.number}"


    @property
    def lowered(self):
        """The name in the PTX, which its head says where it is another."""
        found = re.search(r"^// entry: %s is (.*)$" % re.escape(self.entry),
                          self.ptx.read_text(encoding="utf-8"), re.M)
        return found.group(1) if found else self.entry

    @property
    def ptx(self):
        return self.file.with_name(self.file.name + ".ptx")


def parse(file):
    runs, awaits = [], ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        word, colon, rest = line[2:].strip().partition(":")
        words = rest.split()
        if word == "run" and colon:
            runs.append(Run(file, rest.strip(), len(runs)))
            runs[-1].awaits = awaits
        elif word == "awaits" and colon:
            awaits = rest.strip()
        elif not runs or not colon:
            continue
        elif word in ("grid", "block"):
            setattr(runs[-1], word, ",".join(words))
        elif word == "shared":
            runs[-1].shared = int(words[0])
        elif word in ("buffer", "scalar"):
            runs[-1].parameters.append([word] + words)
        elif word == "approx":
            runs[-1].approx[words[0]] = int(words[1])
        elif word == "open":
            runs[-1].approx[words[0]] = None
        elif word in ("cooperative", "constant", "struct"):
            runs[-1].needs = word
        elif word == "prints":
            runs[-1].prints = int(words[0])
        elif word == "fails":
            runs[-1].fails = words[0]
    return runs


def random_bits(seed, index):
    x = (seed * 0x9e3779b97f4a7c15 + index + 0x9e3779b97f4a7c15) & MASK
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def wide(r, kind):
    significand = 1 + (r & ((1 << 52) - 1)) * 2.0 ** -52
    if kind == "f32":
        significand = int(significand * 2 ** 23) / 2.0 ** 23
    sign = -1.0 if r >> 63 else 1.0
    return sign * significand * 2.0 ** ((r >> 52) % 41 - 20)


def element(kind, generator, seed, index):
    bits = struct.calcsize(FORMAT[kind]) * 8
    r = random_bits(seed, index)
    if generator == "unit":
        return (r >> 40) * 2.0 ** -24
    if generator == "wide":
        return wide(r, kind)
    if generator == "zero":
        value = 0
    elif generator == "index":
        value = index
    elif generator == "small":
        value = (r >> 33) % 201 - (0 if kind[0] == "u" else 100)
    elif generator == "bits":
        value = r
    elif generator == "edge":
        top = 1 << (bits - 1)
        value = (0, 1, MASK, top - 1, top, 2, 0x80, r)[index % 8]
    else:
        sys.exit(f"unknown generator {generator}")
    if kind[0] == "f":
        return float(value)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) \
        else value


def make_input(path, kind, count, generator, seed):
    values = [element(kind, generator, seed, i) for i in range(count)]
    path.write_bytes(struct.pack(f"<{count}{FORMAT[kind]}", *values))


def command_of(run, kiln, device, folder):
    """The command line, and {parameter: (type, file)} of its outputs."""
    line = [kiln, "run", str(run.ptx), "--entry", run.lowered,
            "--device", device, "--grid", run.grid, "--block", run.block,
            "--time-limit", LIMIT_S]
    if run.shared:
        line += ["--shared", str(run.shared)]
    outputs = {}
    for i, parameter in enumerate(run.parameters):
        if parameter[0] == "scalar":
            line += ["--arg", f"{i}={parameter[3]}{parameter[2]}"]
            continue
        _, name, role, kind, count = parameter[:5]
        path = folder / f"{name}.raw"
        if role == "out":
            line += ["--out", f"{i}={path}:{kind}[{count}]"]
        else:
            make_input(path, kind, int(count), parameter[5],
                       int(parameter[6]))
            line += [f"--{role}", f"{i}={path}"]
        if role != "in":
            outputs[name] = (kind, path)
    return line, outputs


def canonical(kind, data):
    """The bytes with every NaN the same."""
    if kind not in ("f32", "f64"):
        return data
    count = len(data) // struct.calcsize(FORMAT[kind])
    values = struct.unpack(f"<{count}{FORMAT[kind]}", data)
    return struct.pack(f"<{count}{FORMAT[kind]}",
                       *[float("nan") if v != v else v for v in values])


class Answer:
    """What a device did with a run."""

    def __init__(self, run, kiln, device, wrapper=()):
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            line, outputs = command_of(run, kiln, device, folder)
            line = [*wrapper, *line]
            done = subprocess.run(line, capture_output=True, text=True,
                                  errors="replace", check=False)
            self.code, self.errors = done.returncode, done.stderr
            self.lines = (done.stdout + done.stderr).splitlines()
            self.printed = [line for line in self.lines
                            if not line.startswith("kiln: ")]
            self.data, self.kinds = {}, {}
            if done.returncode == 0:
                for name, (kind, path) in outputs.items():
                    self.data[name] = canonical(kind, path.read_bytes())
                    self.kinds[name] = kind

    def digests(self, run):
        return {name: hashlib.sha256(data).hexdigest()
                for name, data in self.data.items() if name not in run.approx}


def ordered(kind, data):
    """Floats as integers in which neighbours differ by one."""
    width = struct.calcsize(FORMAT[kind]) * 8
    code = {32: "i", 64: "q"}[width]
    values = struct.unpack(f"<{len(data) * 8 // width}{code}", data)
    return [v if v >= 0 else -(v & ((1 << (width - 1)) - 1)) for v in values]


def worst_ulps(kind, left, right):
    return max((abs(a - b) for a, b in zip(ordered(kind, left),
                                           ordered(kind, right))), default=0)


def own_faults(run, answer, device):
    """What is wrong with an answer by itself."""
    if run.fails:
        if answer.code != 8 or run.fails not in answer.errors:
            return [f"{device}: exit {answer.code}, wanted 8 and {run.fails}: "
                    f"{answer.errors[-300:]}"]
        return []
    if answer.code != 0:
        return [f"{device}: exit {answer.code}: {answer.errors[-600:]}"]
    return []


def compare(run, cuda, soft):
    """(faults, notes) of two answers."""
    faults, notes = [], []
    for name, data in cuda.data.items():
        other = soft.data.get(name, b"")
        if name in run.approx and run.approx[name] is None:
            notes.append(f"{name} is left open")
        elif name in run.approx:
            ulps = worst_ulps(cuda.kinds[name], data, other)
            notes.append(f"{name} within {ulps} of {run.approx[name]} ulp")
            if ulps > run.approx[name] or len(data) != len(other):
                faults.append(f"{name} differs by {ulps} ulp")
        elif data != other:
            first = next((i for i, (a, b) in enumerate(zip(data, other))
                          if a != b), min(len(data), len(other)))
            faults.append(f"{name} differs first at byte {first}")
    if run.prints:
        # The order of threads is open, the lines are not.
        if sorted(cuda.printed) != sorted(soft.printed) or \
                len(cuda.printed) != run.prints:
            other = set(cuda.printed) ^ set(soft.printed)
            faults.append(f"{len(cuda.printed)} lines of {run.prints}; "
                          f"different {sorted(other)[:4]}")
        else:
            notes.append(f"{run.prints} printed lines")
    return faults, notes


def all_runs(only):
    runs = [run for file in sorted(KERNELS.glob("*.cu"))
            for run in parse(file)]
    names = [word for word in (only or "").split(",") if word]
    return [run for run in runs
            if not names or any(name in run.name for name in names)]


def cuda_missing(kiln):
    """Why cuda:0 cannot be used; empty if it can."""
    answer = Answer(all_runs("mandelbrot")[0], kiln, "cuda:0")
    return answer.errors.strip() if answer.code == 3 else ""


def check_again(run, answered, record, before):
    """(faults, notes): whether a GPU answers as what is in the tree says; what
    is not there yet is printed as it would stand there."""
    record[run.name] = answered
    if run.name in before["runs"]:
        return [f"{name}: cuda:0 once answered otherwise"
                for name, digest in before["runs"][run.name].items()
                if answered.get(name) != digest], []
    return [], [f"to be recorded: {json.dumps({run.name: answered})}"]


def check_live(run, arguments, record, before):
    cuda = Answer(run, arguments.kiln, "cuda:0")
    soft = Answer(run, arguments.kiln, "soft")
    faults = own_faults(run, cuda, "cuda:0") + own_faults(run, soft, "soft")
    more, notes = compare(run, cuda, soft)
    if not faults:
        again, new = check_again(run, cuda.digests(run), record, before)
        more, notes = more + again, notes + new
    return faults + more, notes


def check_memory(run, arguments):
    """Under memcheck, which must say of itself that it looked."""
    checked = Answer(run, arguments.kiln, "cuda:0", MEMCHECK)
    faults = own_faults(run, checked, "cuda:0")
    summary = [line for line in checked.lines if "ERROR SUMMARY" in line]
    if not any("ERROR SUMMARY: 0 errors" in line for line in summary):
        faults.append(f"memcheck says {summary or 'nothing'}")
    return faults, ["0 errors"]


def check_recorded(run, arguments, recorded):
    soft = Answer(run, arguments.kiln, "soft")
    faults = own_faults(run, soft, "soft")
    wanted = recorded["runs"][run.name]
    got = soft.digests(run)
    for name, digest in wanted.items():
        if got.get(name) != digest:
            faults.append(f"{name} is not what {recorded['gpu']} answered")
    return faults, [f"{len(wanted)} outputs as recorded"]


def why_not(run, arguments, recorded):
    """Why this run is left out; empty if it is not."""
    if arguments.memcheck and run.fails:
        return "a kernel that shall fail is an error to memcheck, too"
    if run.needs:
        return f"the command has no {run.needs} (live_kernel_suite has)"
    if run.awaits and not arguments.memcheck:
        return "awaited on the software device (live_kernel_suite says what)"
    if recorded and run.name not in recorded["runs"]:
        return "nothing is recorded of it yet (--record on a GPU)"
    return ""


def gpu_name():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                           "--format=csv,noheader"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--only")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--recorded", type=pathlib.Path)
    parser.add_argument("--memcheck", action="store_true")
    arguments = parser.parse_args()
    recorded = json.loads(arguments.recorded.read_text()) \
        if arguments.recorded else None
    if recorded is None:
        why = cuda_missing(arguments.kiln)
        if why:
            print(f"skipped: {why}")
            sys.exit(SKIP)
    before = json.loads((KERNELS / "recorded.json").read_text())
    passed, failed, record, skipped = 0, 0, {}, {}
    for run in all_runs(arguments.only):
        reason = why_not(run, arguments, recorded)
        if reason:
            skipped.setdefault(reason, []).append(run.name)
            continue
        if recorded:
            faults, notes = check_recorded(run, arguments, recorded)
        elif arguments.memcheck:
            faults, notes = check_memory(run, arguments)
        else:
            faults, notes = check_live(run, arguments, record, before)
        print(f"{'not ok' if faults else 'ok':6} {run.name:32} "
              f"{'; '.join(faults or notes)}", flush=True)
        failed += bool(faults)
        passed += not faults
    if arguments.record:
        arguments.record.write_text(json.dumps(
            {"gpu": gpu_name(), "runs": record}, indent=1, sort_keys=True)
            + "\n")
    for reason, names in sorted(skipped.items()):
        print(f"{len(names)} skipped, {reason}: {' '.join(names)}")
    print(f"{passed} passed, {failed} failed, "
          f"{sum(map(len, skipped.values()))} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
