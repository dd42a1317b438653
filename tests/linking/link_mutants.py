#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged inputs, linked by Kiln, against nvcc's own device linker.

    link_mutants.py KILN [--count N] [--share I/N] [--alone N] [--seed S]
                    [--jobs J] [--keep DIR] [--state FILE]
    link_mutants.py --merge STATE...

Relocatable cubins, objects, fatbins and archives made by nvcc are damaged, and
as a tenth LTO-IR, bare, in objects and in archives: some bytes, or the end cut
off. Each of N goes through `kiln link --isolated`, and those that nvlink takes
(all but LTO-IR) through nvlink; the first of --alone are linked in the command's
own process too. Wrong, and the exit code 1:

* the command dies, isolated or after the checks alone (the latter is counted);
* both link, and what comes out defines other names for others, unless nvlink
  lost some and Kiln has as many as there are without damage;
* nvlink links it with all names, Kiln refuses it, nvJitLink by itself links it
  with all names too, and KEPT has no reason why it is refused all the same;
* a file that is not damaged is refused.

Counted: who refuses what the other one links, and of what nvlink alone links
whether all names are there in what came out, and Kiln's reason. A linker that
takes too long (LIMIT_S, NVLINK_LIMIT_S), or writes too much, gave no verdict.

With --state the counts are kept in a file of JSON, and the next run goes on
where this one ended, until N are done; --share does one part of N in so many,
and --merge adds up the states of all parts. What is printed are rows of a table
in Markdown. Exits with 77 where there is no nvcc or no nvJitLink that is as new.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

SKIP = 77
MANY_BYTES = 10 << 20
LIMIT_S = 20
NVLINK_LIMIT_S = 5  # a thousand times what it takes
BATCH = 50  # what one share has of the numbers before the next one has some
ARCH = "sm_80"
# How a linker ends that took too long or wrote too much.
NO_VERDICT = (-signal.SIGALRM, -signal.SIGXFSZ)
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


def run(*words, limit=120):
    """Exit code (negative for a signal), and the last words."""
    with subprocess.Popen(words, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          start_new_session=True) as child:
        # Should this program be killed, a linker without end still ends.
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(child.pid, resource.RLIMIT_CPU,
                             (2 * limit, 2 * limit))
        try:
            said, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return -signal.SIGALRM, "no end"
    return child.returncode, said.decode("utf-8", "replace")


# Why Kiln refuses what nvlink and nvJitLink link with all names: the text of
# the refusal, and the reason.
KEPT = [
    ('section "" is to be N bytes at N of N',
     "what lies behind the file would become code or data"),
    ('a relocation of "" names symbol N of N',
     "what lies behind the table of symbols would go into the code"),
    ('section N, "", relocates section N',
     "relocations would be lost: nvlink refuses it where it sees it"),
    ('section N, "", is aligned to N',
     "the linker would fill more than a mebibyte"),
    ("no member of an archive begins here",
     "members behind it would not be seen, nor their names"),
    ("the file ends within its N sections",
     "sections that are cut off may hold names"),
    ("a member of N bytes is cut off",
     "members behind it would not be seen, nor their names"),
    ("an entry's header of N bytes",
     "entries behind it would not be seen, nor their names"),
    ("an entry's header is cut off",
     "entries behind it would not be seen, nor their names"),
    ("a fatbin's header is cut off",
     "fatbins behind it would not be seen, nor their names"),
    ("its ELF header states",
     "it says that it is of another width or byte order: linkers take it in "
     "one place, and leave its names out in another"),
    ("no fatbin begins here",
     "fatbins behind it would not be seen, nor their names"),
    ("is a second table of symbols",
     "which of two tables of names a linker takes is not known"),
    ("a name at N of N bytes of names",
     "a name that other files see cannot be read"),
    ("neither PTX, nor a cubin",
     "nothing that it could be is in there, and its names are not known"),
    ("that are not N",
     "what is packed in it cannot be unpacked, and its names are not known"),
    ("silently omits finished machine code",
     "it says that it is linked, and of such code linkers make nothing"),
    ("would not be in the result",
     "a piece of it says that it is linked"),
    ("has device code for",
     "it says that it is for others, of which linkers leave finished code out"),
    ("is not in the result",
     "a name that the damaged file defines is lost"),
    ("ended its process with signal",
     "nvJitLink died of it here, and lives where memory is laid out otherwise"),
    ("the linker reports both an error and success",
     "nvJitLink reports an error and success"),
]


def why_kept(said):
    """The reason in KEPT for this refusal; None: there is none."""
    told = " ".join(plain(line) for line in said.split("\n"))
    return next((why for text, why in KEPT if text in told), None)


def raw_link(library, source, out):
    """nvJitLink as it is, in this process, which it may end."""
    kind = {"cubin": 1, "fatbin": 4, "o": 5, "a": 6}[source.rsplit(".", 1)[1]]
    with open(source, "rb") as file:
        data = file.read()
    linker = ctypes.CDLL(library)
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * 1)(b"-arch=" + ARCH.encode())
    if linker.nvJitLinkCreate(ctypes.byref(handle), 1, words) or \
            linker.nvJitLinkAddData(handle, kind, data,
                                    ctypes.c_size_t(len(data)), b"damaged") or \
            linker.nvJitLinkComplete(handle) or \
            linker.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)):
        return 1
    linked = ctypes.create_string_buffer(max(1, size.value))
    if linker.nvJitLinkGetLinkedCubin(handle, linked):
        return 1
    with open(out, "wb") as file:
        file.write(linked.raw[:size.value])
    return 0


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


def plain(line):
    line = re.sub(r'"[^"]*"', '""', line)
    return re.sub(r"\d+", "N", re.sub(r"0x[0-9a-f]+", "N", line))


def reason(said):
    """Why Kiln refused it, without what differs from file to file."""
    line = next((line for line in said.split("\n") if "error:" in line), said)
    line = line.split("error:", 1)[-1].split(": at byte ")[-1]
    return plain(line.strip())[:100]


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
        self.library = ""   # that Kiln links with

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
        counts, wrong = ["damaged files", name], []
        code, said = self.kiln(source, base + ".linked", options, "--isolated",
                               "--isolated-seconds", str(LIMIT_S))
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
                               base + ".nvlink", limit=NVLINK_LIMIT_S)
            other = "links" if code == 0 else "fails" if code > 0 else \
                "crash" if code not in NO_VERDICT else "gave no verdict"
            if "links" == verdict == other:
                ours = defined(base + ".linked")
                others = defined(base + ".nvlink")
                # A name itself may be what is damaged.
                kept = len(ours) == len(self.names) > len(others)
                if ours != others and ours != self.names and not kept:
                    other = "links otherwise"
                    wrong.append("%s: %s is not %s" % (
                        source, sorted(ours), sorted(others)))
            if verdict == "links" and other in ("fails", "crash"):
                counts.append("links, nvlink not: " +
                              theirs.strip().split("\n")[-1][:60])
        counts.append("kiln %s, nvlink %s" % (verdict, other))
        if other == "links" and verdict != "links":
            quality = self.quality(base + ".nvlink")
            counts.append("nvlink links, %s: %s" % (quality, reason(said)))
            if quality == "whole":
                self.judge(source, said, counts, wrong)
        keep = self.given.keep and (wrong or crash)
        for end in ("-" + name, ".linked", ".alone", ".nvlink", ".raw"):
            if os.path.exists(base + end):
                if keep:
                    shutil.copy(base + end, self.given.keep)
                os.unlink(base + end)
        return counts, wrong

    def find_library(self):
        code, said = run(self.given.kiln, "find", "lib", "nvJitLink", "--json")
        if code == 0:
            self.library = json.loads(said)["items"][0]["path"]

    def judge(self, source, said, counts, wrong):
        """Of what nvlink links whole and Kiln refuses: who is right."""
        out = source.rsplit("-", 1)[0] + ".raw"
        code, _ = run(sys.executable, "-B", os.path.abspath(__file__), "--raw",
                      self.library, source, out, limit=LIMIT_S)
        raw = "dies of it" if code < 0 else "refuses it" if code else \
            "makes of it: " + self.quality(out)
        if raw != "makes of it: whole":
            counts.append("not as nvlink: nvJitLink by itself " + raw)
            return
        why = why_kept(said)
        counts.append("not as nvlink: %s" % why)
        if why is None:
            wrong.append("%s: nvlink and nvJitLink link it, Kiln says: %s" % (
                source, said.strip()))

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
        if (state["seed"], state["share"]) != (self.given.seed,
                                               self.given.share):
            sys.exit("%s is of seed %d, share %s" % (path, state["seed"],
                                                     state["share"]))
        self.counts.update(state["counts"])
        self.wrong += state["wrong"]
        return state["next"]

    def save(self, after):
        if self.given.state is None:
            return
        with open(self.given.state + ".new", "w", encoding="utf-8") as file:
            json.dump({"seed": self.given.seed, "share": self.given.share,
                       "next": after, "counts": dict(sorted(self.counts.items())),
                       "wrong": self.wrong}, file, indent=1)
        os.replace(self.given.state + ".new", self.given.state)

    def numbers(self, after, before):
        """Those of this share."""
        part, parts = (int(word) for word in self.given.share.split("/"))
        return [number for number in range(after, before)
                if number // BATCH % parts == part - 1]

    def run(self):
        self.whole()
        after = self.load()
        parts = int(self.given.share.split("/")[1])
        step = BATCH * parts * max(1, self.given.jobs // 2)
        with concurrent.futures.ProcessPoolExecutor(self.given.jobs) as pool:
            while after < self.given.count:
                before = min(after + step, self.given.count)
                for counts, wrong in pool.map(self.one,
                                              self.numbers(after, before)):
                    self.counts.update(counts)
                    self.wrong += wrong
                after = before
                self.save(after)
        return show(self.counts, self.wrong)


def show(counts, wrong):
    for what, count in sorted(counts.items()):
        print("| %s | %d |" % (what, count))
    for what in wrong:
        print("WRONG: " + what)
    print("%d damaged files, %d wrong" % (counts["damaged files"], len(wrong)))
    return 1 if wrong else 0


def merge(paths):
    counts, wrong = collections.Counter(), []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        counts.update(state["counts"])
        wrong += state["wrong"]
    return show(counts, wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln", type=os.path.abspath, nargs="?")
    parser.add_argument("--count", type=int, default=5000 if os.environ.get(
        "KILN_FAULT_ALL") else 400)
    parser.add_argument("--alone", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--keep")
    parser.add_argument("--state")
    parser.add_argument("--merge", nargs="+")
    parser.add_argument("--raw", nargs=3)
    given = parser.parse_args()
    if given.merge:
        return merge(given.merge)
    if given.raw:
        return raw_link(*given.raw)
    if given.kiln is None:
        parser.error("which command is to link?")
    # Inherited by everything that is started: no core files, and an end for a
    # linker that writes without one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MANY_BYTES, 4 * MANY_BYTES))
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
        driver.find_library()
        return driver.run()


if __name__ == "__main__":
    sys.exit(main())
