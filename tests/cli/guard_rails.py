#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Kiln costs those who carry and start it: bytes, system calls, time and
memory, which libraries it opens, and what a run out of the cache takes.

    guard_rails.py --kiln KILN --library LIBKILN --watch WATCH_RUN
                   size|start|open|warm
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
MOST_BYTES = 9 * 1000 * 1000
MOST_CALLS = 60           # of `kiln --version`
MOST_RSS_KIB = 10 * 1000  # of the first program that a user runs
# Of the first program, on an idle machine. Where others run: the ratio of the
# CPU time of all its threads to that of an empty process, since what else the
# machine does changes both.
MOST_WALL_NS = 12 * 1000 * 1000
MOST_RATIO = 22
ROUNDS = 25
# Of a kernel in CUDA C++ whose PTX is in the cache, all of the process: 35 % less
# than the 2,420,000 that it took when its PTX was read three times, its compiler
# searched for five times and 500 KB of tables cleared.
MOST_WARM_INSTRUCTIONS = 1573000
NEEDED = re.compile(r"(libc|libm|ld-linux-[\w-]+)\.so\.\d+$")
# Of others; none is opened by a command that can do without.
OTHERS = ("libnvrtc.so.13", "libnvvm.so.4", "libnvJitLink.so.13",
          "libnvptxcompiler.so.13", "libLLVM.so.18", "libnccl.so.2",
          "libmpi.so.40", "libcudart.so.13")
FIRST = ["run", "lib:mandelbrot", "--device", "soft", "--out",
         "picture=m.png:u8[300,451,3]", "--arg", "w=451", "--arg", "h=300",
         "--arg", "limit=200"]
PTX = (".version 7.0\n.target sm_70\n.address_size 64\n"
       ".visible .entry k() { ret; }\n")


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


class Watch:
    def __init__(self, options, work):
        self.program, self.kiln, self.work = options.watch, options.kiln, work
        self.variables = {"KILN_CACHE_DIR": os.path.join(work, "cache")}

    def run(self, *words, trace=False, program=None):
        """{word: value} of a command's report; "open" is a list of paths."""
        report = os.path.join(self.work, "report")
        done = subprocess.run(
            [self.program, *(["--calls"] if trace else []), report,
             program or self.kiln, *words], cwd=self.work, check=False,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, **self.variables})
        if done.returncode == SKIP:
            print(done.stdout, end="")
            sys.exit(SKIP)
        expect(done.returncode == 0, "watch_run ran %s" % " ".join(words))
        found = {"open": []}
        with open(report, encoding="utf-8", errors="replace") as file:
            for line in file:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "open":
                    found["open"].append(rest)
                else:
                    found[word] = int(rest)
        return found


def check_size(options, work):
    """What a package carries, and what it needs."""
    for path in (options.library, options.kiln):
        stripped = os.path.join(work, os.path.basename(path))
        subprocess.run(["strip", "-o", stripped, path], check=True)
        size = os.path.getsize(stripped)
        print("%s: %d bytes" % (os.path.basename(path), size))
        expect(size <= MOST_BYTES, "%s has at most %d bytes" % (
            path, MOST_BYTES))
        said = subprocess.run(["readelf", "-d", path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        print("  needs %s" % ", ".join(needed))
        expect(needed and all(NEEDED.match(name) for name in needed),
               "%s needs libc and libm alone" % path)


def check_start(options, work):
    """How little happens before the first byte of an answer."""
    watch = Watch(options, work)
    version = watch.run("--version", trace=True)
    print("kiln --version: %d system calls" % version["calls"])
    expect(version["exit"] == 0 and version["calls"] <= MOST_CALLS,
           "kiln --version makes at most %d system calls" % MOST_CALLS)
    # In turns, and the best of each: what else runs here hits both.
    first, empty = [], []
    for _ in range(ROUNDS):
        first.append(watch.run(*FIRST))
        empty.append(watch.run(program="true"))
    expect(all(one["exit"] == 0 for one in first), "the first program runs")
    wall = min(one["wall_ns"] for one in first)
    cpu = min(one["cpu_ns"] for one in first)
    least = min(one["cpu_ns"] for one in empty)
    memory = max(one["rss_kib"] for one in first)
    print("kiln run lib:mandelbrot: %.1f ms; %.1f ms of CPU, an empty process "
          "%.2f, ratio %.1f; %d KiB" % (wall / 1e6, cpu / 1e6, least / 1e6,
                                        cpu / least, memory))
    expect(wall <= MOST_WALL_NS or cpu <= MOST_RATIO * least,
           "it takes at most %d ms, or %d times the CPU time of nothing" % (
               MOST_WALL_NS // 1000000, MOST_RATIO))
    expect(memory <= MOST_RSS_KIB, "it has at most %d KiB" % MOST_RSS_KIB)


def others_in(found):
    return sorted({os.path.basename(path) for path in found["open"]
                   if re.match(r"lib(nvrtc|nvvm|nvJitLink|nvptxcompiler|LLVM|"
                               r"nccl|mpi|cudart)\b", os.path.basename(path))})


def check_open(options, work):
    """No library is opened by a command that has no need of it."""
    folder = os.path.join(work, "others")
    os.mkdir(folder)
    for name in OTHERS:
        shutil.copy(options.library, os.path.join(folder, name))
    for name, text in (("k.ptx", PTX), ("k.cu", "__global__ void k() {}\n"),
                       ("k.graph", ""), ("k.kiln", "program k(out x: u32)")):
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write(text)
    watch = Watch(options, work)
    watch.variables["LD_LIBRARY_PATH"] = folder
    # What does need one opens it, or nothing here would mean anything.
    compiled = others_in(watch.run("compile", "k.cu", "-o", "made.ptx",
                                   trace=True))
    expect(any("nvrtc" in name for name in compiled),
           "kiln compile k.cu opens NVRTC: it opens %s" % compiled)
    for words in (["--version"], ["--help"], FIRST, ["inspect", "k.ptx"],
                  ["run", "k.ptx", "--device", "soft"], ["lib", "list"],
                  ["compile", "k.kiln", "-o", "made2.ptx"], ["cache"],
                  ["completion", "bash"]):
        found = watch.run(*words, trace=True)
        print("kiln %s: opens %d files" % (" ".join(words),
                                           len(found["open"])))
        expect(not others_in(found), "kiln %s opens %s" % (
            " ".join(words), others_in(found)))


SAXPY = """__global__ void saxpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
GIVEN = ["--device", "soft", "--out", "0=y.bin:f32[1024]", "--in", "1=x.bin:f32",
         "--arg", "2=2f32", "--arg", "3=1024i32"]


def profile(options, work, words):
    """Instructions of a command, and how often each function was called."""
    out = os.path.join(work, "profile")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
         options.kiln, *words], cwd=work, check=False, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "KILN_CACHE_DIR": os.path.join(work, "cache")})
    expect(done.returncode == 0, "kiln %s runs under valgrind: %s" % (
        " ".join(words), done.stderr[-400:]))
    names, calls, called, total = {}, {}, None, 0
    with open(out, encoding="utf-8", errors="replace") as file:
        for line in file:
            named = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
            if named:
                name = names.setdefault(named[2], named[3])
                called = name if named[1] else called
            elif line.startswith("calls="):
                count = int(line[6:].split()[0])
                calls[called] = calls.get(called, 0) + count
            elif line.startswith(("summary:", "totals:")):
                total = int(line.split()[1])
    return total, calls


def check_warm(options, work):
    """PTX is read once, wherever it comes from, and a run out of the cache
    searches all places for its compiler once and beside it for the rest."""
    if shutil.which("valgrind") is None:
        print("skip: no valgrind")
        sys.exit(SKIP)
    with open(os.path.join(work, "k.cu"), "w", encoding="utf-8") as file:
        file.write(SAXPY)
    with open(os.path.join(work, "x.bin"), "wb") as file:
        file.write(bytes(4096))
    made = subprocess.run([options.kiln, "compile", "k.cu", "-o", "k.ptx"],
                          cwd=work, check=False)
    if made.returncode != 0:
        print("skip: no NVRTC")
        sys.exit(SKIP)
    watch = Watch(options, work)
    expect(watch.run("run", "k.cu", *GIVEN)["exit"] == 0, "k.cu runs")
    for name in ("k.ptx", "k.cu"):
        total, calls = profile(options, work, ["run", name, *GIVEN])
        reads = calls.get("kilni_image_ptx_module_create", 0)
        searches = calls.get("kilni_locate_search", 0)
        print("kiln run %s: %d instructions, %d read of PTX, %d searches, "
              "%d calls" % (name, total, reads, searches, sum(calls.values())))
        expect(reads == 1, "the PTX of %s is read once" % name)
        # NVRTC, and two looks beside it; more where its headers lie elsewhere.
        expect(searches <= 3, "at most three searches for %s" % name)
        expect(total <= MOST_WARM_INSTRUCTIONS, "%s takes at most %d" % (
            name, MOST_WARM_INSTRUCTIONS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kiln", "library", "watch"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("what", choices=("size", "start", "open", "warm"))
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="kiln-rails-")
    try:
        {"size": check_size, "start": check_start,
         "open": check_open, "warm": check_warm}[options.what](options, work)
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
