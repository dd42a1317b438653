#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged inputs, linked by Kiln, against nvcc's own device linker.

    link_mutants.py KILN [--count N] [--alone N] [--seed S] [--jobs J]
                    [--keep DIR] [--state FILE]

Relocatable cubins, objects, fatbins and archives made by nvcc are damaged, and
as a tenth LTO-IR, bare, in objects and in archives: some bytes, or the end cut
off. Each of N goes through `kiln link --isolated`, and those that nvlink takes
(all but LTO-IR) through nvlink; the first of --alone are linked in the command's
own process too. Wrong, and the exit code 1:

* the command dies, isolated or after the checks alone (the latter is counted);
* both link, and what comes out defines other names for others, unless nvlink
  lost some and Kiln has all that there are without damage;
* a file that is not damaged is refused.

Counted: who refuses what the other one links, and of what nvlink alone links
whether all names are there in what came out, and Kiln's reason.

With --state the counts are kept in a file of JSON, and the next run goes on
where this one ended, until N are done; what is printed are rows of a table in
Markdown. Exits with 77 where there is no nvcc or no nvJitLink that is as new.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIP = 77
MANY_BYTES = 10 << 20
ARCH = "sm_80"
SOURCE = """
__device__ int salt = 40;
__constant__ int step[4] = {1, 2, 3, 4};
template <class T> __device__ __noinline__ T again(T x) { return 5 * x; }
__device__ __noinline__ static int own(int x) { return 7 * x; }
__device__ __noinline__ int twice(int x) { return again(x) + own(x); }
extern "C" __global__ void k(int* p) {
  __shared__ int part[64];
  part[threadIdx.x] = twice(threadIdx.x);
  __syncthreads();
  p[threadIdx.x] = part[threadIdx.x] + salt + step[threadIdx.x & 3];
}
"""


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def run(*words):
    """Exit code (negative for a signal), and the last words."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=120,
                              check=False)
    except subprocess.TimeoutExpired:
        return -14, "no end"
    return done.returncode, (done.stdout + done.stderr).decode(
        "utf-8", "replace")


def defined(path):
    """The names that an ELF file defines for others."""
    with open(path, "rb") as file:
        data = file.read()
    table, = struct.unpack_from("<Q", data, 40)
    count, = struct.unpack_from("<H", data, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i)
            for i in range(count)]
    found = set()
    for row in rows:
        if row[1] != 2:
            continue
        texts = rows[row[6]][4]
        for at in range(row[4], row[4] + row[5], 24):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            if info & 15 in (1, 2) and info >> 4 != 0 and section != 0:
                end = data.index(b"\0", texts + name)
                found.add(data[texts + name:end])
    return found


def reason(said):
    """Why Kiln refused it, without what differs from file to file."""
    line = next((line for line in said.split("\n") if "error:" in line), said)
    line = line.split("error:", 1)[-1].split(": at byte ")[-1]
    line = re.sub(r'"[^"]*"', '""', line.strip())
    return re.sub(r"\d+", "N", re.sub(r"0x[0-9a-f]+", "N", line))[:100]


def damage(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        data[at] = (rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 255,
                    rng.randrange(4))[how]
    if rng.randrange(16) == 0:
        del data[rng.randrange(len(data)):]
    return bytes(data)


class Driver:
    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.nvlink = tool("nvlink")
        self.wrong, self.counts = [], collections.Counter()
        self.files = []
        self.names = set()  # of a link without damage

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_files(self):
        nvcc = tool("nvcc")
        with open(self.path("k.cu"), "w", encoding="ascii") as file:
            file.write(SOURCE)
        lto = ["-gencode", "arch=compute_80,code=lto_80"]
        arch = ["-arch=" + ARCH]
        rows = [("k.cubin", arch + ["-cubin"], []),
                ("debug.cubin", arch + ["-cubin", "-lineinfo"], []),
                ("k.o", arch + ["-c"], []),
                ("packed.o", arch + ["-c", "-Xfatbin", "-compress-all"], []),
                ("k.fatbin", arch + ["-fatbin"], []),
                ("lto.o", lto + ["-c"], ["--lto"])]
        for name, words, options in rows:
            code, said = run(nvcc, "-rdc=true", *words, self.path("k.cu"), "-o",
                             self.path(name))
            if code:
                print("nvcc makes no %s: %s" % (name, said.strip()[:200]))
                continue
            self.files.append((name, options))
        if any(name == "k.o" for name, _ in self.files):
            if run("ar", "rcs", self.path("libk.a"), self.path("k.o"))[0] == 0:
                self.files.append(("libk.a", []))
        if any(name == "lto.o" for name, _ in self.files):
            if run("ar", "rcs", self.path("liblto.a"),
                   self.path("lto.o"))[0] == 0:
                self.files.append(("liblto.a", ["--lto"]))
            if run(self.given.kiln, "compile", self.path("k.cu"), "--output",
                   "ltoir", "-o", self.path("k.ltoir"))[0] == 0:
                self.files.append(("k.ltoir", ["--lto"]))

    def choose(self, number):
        """Of ten, nine without LTO-IR."""
        of_ten = number % 10
        some = [row for row in self.files if bool(row[1]) == (of_ten == 9)]
        some = some or self.files
        return some[number // (10 if of_ten == 9 else 1) % len(some)]

    def kiln(self, source, out, options, *words):
        return run(self.given.kiln, "link", source, "-o", out, "--backend",
                   "nvjitlink", "--arch", ARCH, "--no-cache", *options, *words)

    def one(self, number):
        """(counts, wrong) of one damaged file; number -1: of each whole one."""
        name, options = self.choose(number)
        rng = random.Random("%d %d" % (self.given.seed, number))
        with open(self.path(name), "rb") as file:
            data = damage(file.read(), rng)
        base = self.path("m%d" % number)
        source = base + "-" + name
        with open(source, "wb") as file:
            file.write(data)
        counts, wrong = [name], []
        code, said = self.kiln(source, base + ".kiln", options, "--isolated",
                               "--isolated-seconds", "60")
        crash = "ended its process with signal" in said
        verdict = "links" if code == 0 else "crash" if crash else \
            "refused before" if "nvjitlink" not in said.lower() else "fails"
        counts.append(verdict)
        if code < 0 or code > 9:
            wrong.append("%s: the command ended with %d" % (source, code))
        if number < self.given.alone:
            alone, _ = self.kiln(source, base + ".alone", options)
            counts.append("alone: " + ("dies" if alone < 0 else "lives"))
        other = "not asked"
        if not options and self.nvlink:
            code, theirs = run(self.nvlink, "--arch=" + ARCH, source, "-o",
                               base + ".nvlink")
            other = "links" if code == 0 else "crash" if code < 0 else "fails"
            if "links" == verdict == other:
                ours = defined(base + ".kiln")
                others = defined(base + ".nvlink")
                if ours != others and ours != self.names:
                    other = "links otherwise"
                    wrong.append("%s: %s is not %s" % (
                        source, sorted(ours), sorted(others)))
            if verdict == "links" and other in ("fails", "crash"):
                counts.append("links, nvlink not: " +
                              theirs.strip().split("\n")[-1][:60])
        counts.append("kiln %s, nvlink %s" % (verdict, other))
        if other == "links" and verdict != "links":
            counts.append("nvlink links, %s: %s" % (
                self.quality(base + ".nvlink"), reason(said)))
        keep = self.given.keep and (wrong or crash)
        for end in ("-" + name, ".kiln", ".alone", ".nvlink"):
            if os.path.exists(base + end):
                if keep:
                    shutil.copy(base + end, self.given.keep)
                os.unlink(base + end)
        return counts, wrong

    def quality(self, path):
        """What became of the names in what nvlink linked."""
        if os.path.getsize(path) > MANY_BYTES:
            return "to very many bytes"
        try:
            found = defined(path)
        except (struct.error, ValueError, IndexError):
            return "to what cannot be read"
        return "whole" if self.names <= found else "without some names"

    def whole(self):
        for name, options in self.files:
            code, said = self.kiln(self.path(name), self.path("whole.cubin"),
                                   options, "--isolated")
            if code:
                self.wrong.append("%s, not damaged: %s" % (name, said.strip()))
            elif name == "k.cubin":
                self.names = defined(self.path("whole.cubin"))

    def load(self):
        """The number that is next."""
        path = self.given.state
        if path is None or not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        if state["seed"] != self.given.seed:
            sys.exit("%s is of seed %d" % (path, state["seed"]))
        self.counts.update(state["counts"])
        self.wrong += state["wrong"]
        return state["next"]

    def save(self, after):
        if self.given.state is None:
            return
        with open(self.given.state + ".new", "w", encoding="utf-8") as file:
            json.dump({"seed": self.given.seed, "next": after,
                       "counts": dict(sorted(self.counts.items())),
                       "wrong": self.wrong}, file, indent=1)
        os.replace(self.given.state + ".new", self.given.state)

    def run(self):
        self.whole()
        after = self.load()
        with concurrent.futures.ThreadPoolExecutor(self.given.jobs) as pool:
            while after < self.given.count:
                some = range(after, min(after + 50, self.given.count))
                for counts, wrong in pool.map(self.one, some):
                    self.counts.update(counts)
                    self.wrong += wrong
                after = some.stop
                self.save(after)
        for what, count in sorted(self.counts.items()):
            print("| %s | %d |" % (what, count))
        for what in self.wrong:
            print("WRONG: " + what)
        print("%d damaged files, %d wrong" % (self.given.count,
                                              len(self.wrong)))
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln", type=os.path.abspath)
    parser.add_argument("--count", type=int, default=600 if os.environ.get(
        "KILN_FAULT_ALL") else 60)
    parser.add_argument("--alone", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep")
    parser.add_argument("--state")
    given = parser.parse_args()
    if tool("nvcc") is None:
        print("skipped: no nvcc here")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(given, folder)
        driver.make_files()
        if not driver.files:
            print("skipped: this nvcc makes nothing for %s" % ARCH)
            return SKIP
        name, options = driver.files[0]
        code, said = driver.kiln(driver.path(name), driver.path("probe"),
                                 options)
        if code in (3, 4, 6):
            print("skipped: no nvJitLink that is as new as nvcc: %s" % said)
            return SKIP
        return driver.run()


if __name__ == "__main__":
    sys.exit(main())
