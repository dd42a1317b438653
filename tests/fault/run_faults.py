#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: `kiln run` as a whole process, failing one call after the other.

    run_faults.py KILN PRELOAD [--all]

Every allocation, call about a file, mapping of memory and start of a thread of
the process fails once, and then from there on: its own, those of the library,
of the software device and of the libraries that it uses. Whatever fails, the
command ends with an exit code of its own and says why, its output file is whole
or absent, nothing else is left behind, and what it calls done is right. At most
24 points of a kind, spread over all of them, unless --all or KILN_FAULT_ALL=1.
"""
import argparse
import collections
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

COUNT = 96
POINTS = 24
KINDS = ("alloc", "file", "map", "thread")
# What is written, and what more is asked for.
WAYS = (("o.raw", ()), ("o.npy", ("--json", "--stats")))
PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.s32 %r2, %r2, 1;
  st.global.u32 [%rd5], %r2;
  ret;
}
"""


class Runs:
    def __init__(self, kiln, preload, folder):
        self.kiln, self.preload, self.folder = kiln, preload, folder
        self.name, self.more, self.wanted = "", (), b""
        (folder / "k.ptx").write_text(PTX)
        (folder / "in.raw").write_bytes(
            struct.pack("<%dI" % COUNT, *range(COUNT)))
        (folder / "out").mkdir()
        self.codes = collections.Counter()

    def count(self, way, kind):
        """How many calls a run makes in which none fails."""
        self.name, self.more = way
        for path in (self.folder / "out").iterdir():
            path.unlink()
        code, said, count = self.run(kind, 0, False)
        out = self.folder / "out" / self.name
        self.wanted = out.read_bytes() if out.exists() else b""
        right = struct.pack("<%dI" % COUNT, *range(1, COUNT + 1))
        if code != 0 or count == 0 or not self.wanted.endswith(right):
            sys.exit("%s: exit code %d, %d calls: %s"
                     % (kind, code, count, said))
        return count

    def run(self, kind, nth, from_on):
        """(exit code, what was said, calls counted) of one process."""
        count = self.folder / "count"
        count.unlink(missing_ok=True)
        env = {"PATH": os.environ.get("PATH", ""), "LD_PRELOAD": self.preload,
               "HOME": str(self.folder), "FAULT_KIND": kind,
               "FAULT_NTH": str(nth), "FAULT_FROM": str(int(from_on)),
               "FAULT_COUNT": str(count)}
        line = [self.kiln, "run", str(self.folder / "k.ptx"), "--device",
                "soft", "--grid", "1", "--block", str(COUNT),
                "--in", "0=%s" % (self.folder / "in.raw"),
                "--out", "1=%s:u32[%d]" % (self.folder / "out" / self.name,
                                           COUNT), *self.more]
        done = subprocess.run(line, env=env, capture_output=True, text=True,
                              errors="replace", timeout=60, check=False)
        counted = int(count.read_text()) if count.exists() else 0
        return done.returncode, done.stdout + done.stderr, counted

    def fault_of(self, kind, nth, from_on):
        """What was wrong with a run; None if nothing was."""
        out = self.folder / "out" / self.name
        out.unlink(missing_ok=True)
        code, said, _ = self.run(kind, nth, from_on)
        self.codes[code] += 1
        left = sorted(path.name for path in out.parent.iterdir())
        whole = out.exists() and out.read_bytes() == self.wanted
        for path in out.parent.iterdir():
            if path != out:
                path.unlink()
        if code < 0 or code > 9 or code in (2,):
            return "exit code %d: %s" % (code, said[-300:])
        if left not in ([], [self.name]):
            return "left %s behind" % left
        if left and not whole:
            return "half an output"
        if code == 0 and not whole:
            return "done, and no output"
        # Where nothing can be written any more nothing can be said.
        if code != 0 and not said and not (kind == "file" and from_on):
            return "exit code %d without a word" % code
        return None


def points(count, every):
    """Which of `count` calls fail."""
    if every or count <= POINTS:
        return range(1, count + 1)
    return sorted({1 + i * (count - 1) // (POINTS - 1) for i in range(POINTS)})


def sweep(runs, way, kind, every):
    """How many runs were wrong of those in which a call of a kind failed."""
    count = runs.count(way, kind)
    failed = tried = 0
    for from_on in (False, True):
        for nth in points(count, every):
            tried += 1
            fault = runs.fault_of(kind, nth, from_on)
            if fault:
                failed += 1
                print("not ok: %s %d of %d%s: %s"
                      % (kind, nth, count, " and all behind it" if from_on
                         else "", fault), flush=True)
    print("%s, %s: %d calls, %d runs" % (way[0], kind, count, tried),
          flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     allow_abbrev=False)
    parser.add_argument("kiln")
    parser.add_argument("preload")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    every = arguments.all or os.environ.get("KILN_FAULT_ALL") == "1"
    failed = 0
    with tempfile.TemporaryDirectory() as text:
        runs = Runs(arguments.kiln, arguments.preload, pathlib.Path(text))
        for way in WAYS:
            for kind in KINDS:
                failed += sweep(runs, way, kind, every)
        print("exit codes: %s" % ", ".join(
            "%d: %d" % pair for pair in sorted(runs.codes.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
