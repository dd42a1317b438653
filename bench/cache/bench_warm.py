#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: a warm start against a cold start of `kiln run`.

    bench_warm.py KILN [--device soft|cuda:0] [--runs N] [--spawn PROGRAM]
                  [--json]

Runs a small CUDA C++ file, and one that includes half of CUB's block
algorithms where those headers are, with an empty cache (cold) and with what
that left behind (warm), N times each, cold and warm in turn. The baseline of
each row is the cold start. The device's start costs the same in both, so what
a process that opens it takes longer than one that does not is taken off; a
GPU's driver has its own cache off. Times are of the wall, and the least of all runs, as
a busy machine only adds to them; beside them stands the processor's time.
--spawn names bench_spawn, a small program that starts the other one and takes
the time, by default the one of KILN's build; without it Python does, which
costs a millisecond more, cold and warm.

Says too what is in the process after a warm start: neither NVRTC, nvJitLink,
libNVVM nor the driver's own compiler may be. Exits with 1 if one is, or if a
warm start on the software device is not 20 times sooner; with 77 where there is
no NVRTC. (On a GPU what is left of a warm start may be less than what the
driver's own start varies by, which is said.)
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SMALL = """__global__ void saxpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
CUB = """#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
extern "C" __global__ void sum(int* x) {
  typedef cub::BlockReduce<int, 128> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  int total = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) x[0] = total;
}
"""
# Who must not be there: name of the file begins with
COMPILERS = ("libnvrtc", "libnvJitLink", "libnvvm",
             "libnvidia-ptxjitcompiler")
LEAST = 20.0


class Case:
    """One kernel, and how it is run."""

    def __init__(self, name, source, arguments):
        self.name, self.source, self.arguments = name, source, arguments


CASES = [
    Case("saxpy", SMALL, ["--out", "0=y.bin:f32[1024]",
                          "--in", "1=x.bin:f32", "--arg", "2=2f32",
                          "--arg", "3=1024i32"]),
    Case("CUB block reduction", CUB, ["--inout", "0=x.bin:i32",
                                      "--block", "128"]),
]


def environment(folder):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("KILN_")}
    env["KILN_CACHE_DIR"] = os.path.join(folder, "cache")
    env["CUDA_CACHE_DISABLE"] = "1"
    return env


def run_once(command, folder, spawn=None):
    """Seconds by the wall and of the processor, and what it said, which with
    `spawn` is nothing."""
    with open(os.path.join(folder, "x.bin"), "wb") as file:
        file.write(bytes(4096))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(([spawn] if spawn else []) + command, cwd=folder,
                          env=environment(folder), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if spawn and done.returncode < 125:
        wall = int(done.stdout) / 1e9
    return (wall, after.ru_utime + after.ru_stime - before.ru_utime
            - before.ru_stime), done


def beside(kiln):
    """The bench_spawn of the build that `kiln` is of, or None."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(kiln)))
    spawn = os.path.join(folder, "bench", "locate", "bench_spawn")
    return spawn if os.access(spawn, os.X_OK) else None


def least(times, which):
    """Milliseconds."""
    return min(time[which] for time in times) * 1e3


def empty(folder):
    shutil.rmtree(os.path.join(folder, "cache"), ignore_errors=True)


def account(command, folder):
    """What a run says of itself."""
    done = run_once(command + ["--stats", "--json"], folder)[1]
    return json.loads(done.stdout)


def measure(kiln, device, case, options, folder):
    """A row, or None where the file does not compile here."""
    runs, spawn = options.runs, options.spawn
    with open(os.path.join(folder, "k.cu"), "w", encoding="utf-8") as file:
        file.write(case.source)
    command = [kiln, "run", "k.cu", "--device", device, *case.arguments]
    cold, warm = [], []
    for _ in range(runs):
        empty(folder)
        seconds, done = run_once(command, folder, spawn)
        if done.returncode != 0:
            return None, run_once(command, folder)[1]
        cold.append(seconds)
        warm.append(run_once(command, folder, spawn)[0])
    # Twice more, with an account of what was done, which is not timed.
    empty(folder)
    first = account(command, folder)
    second = account(command, folder)
    wanted = "none" if device == "soft" else "hit"
    if (first["cache"]["compile"], second["cache"]["compile"],
            second["cache"]["link"]) != ("miss", "hit", wanted):
        sys.exit("%s: %s, then %s" % (case.name, first["cache"],
                                      second["cache"]))
    compilers = [path for path in second["libraries"]
                 if os.path.basename(path).startswith(COMPILERS)]
    return {"name": "warm start, %s" % case.name, "unit": "ms",
            "value": least(warm, 0), "cold": least(cold, 0),
            "processor": {"warm": least(warm, 1), "cold": least(cold, 1)},
            "cache": second["cache"], "compilers": compilers}, done


def device_start(kiln, device, options, folder):
    """What opening the device alone costs, which is not the cache's."""
    # The device is opened, the file refused before the driver sees it; what
    # the process costs without a device stays in.
    with open(os.path.join(folder, "e.cubin"), "wb") as file:
        file.write(b"\x7fELF")
    command = [kiln, "run", "e.cubin", "--device", device, "--no-cache"]
    runs, spawn = options.runs, options.spawn
    opened = [run_once(command, folder, spawn)[0] for _ in range(runs)]
    without = [run_once([kiln, "--version"], folder, spawn)[0]
               for _ in range(runs)]
    return max(least(opened, 0) - least(without, 0), 0.0)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--device", default="soft")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--spawn")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    options = options_of()
    kiln = os.path.abspath(options.kiln)
    options.spawn = options.spawn or beside(kiln)
    if subprocess.run([kiln, "find", "lib", "nvrtc"], check=False,
                      stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: there is no NVRTC on this machine")
        return 77
    rows, good = [], True
    with tempfile.TemporaryDirectory(prefix="kiln-warm-") as folder:
        start = device_start(kiln, options.device, options, folder)
        for case in CASES:
            row, done = measure(kiln, options.device, case, options, folder)
            if row is None:
                print("not here: %s: %s" % (
                    case.name, done.stderr.decode().strip()[:200]))
                continue
            warm = row["value"] - start
            row["baseline"] = {"name": "cold start", "value": row.pop("cold")}
            # None where no more is left than a long start varies by.
            row["ratio"] = ((row["baseline"]["value"] - start) / warm
                            if warm > 0.02 * start else None)
            rows.append(row)
            soon = (row["ratio"] is None or row["ratio"] >= LEAST
                    or options.device != "soft")
            good = good and not row["compilers"] and soon
    if options.json:
        print(json.dumps({"device": options.device, "device_start_ms": start,
                          "benches": rows}, indent=2))
    else:
        print("device %s, its own start %.2f ms" % (options.device, start))
        for row in rows:
            print("%-32s %7.2f ms  cold %7.1f ms  %s; "
                  "processor %.1f and %.1f ms; compiled %s, linked %s; "
                  "compilers in the process: %s" % (
                      row["name"], row["value"], row["baseline"]["value"],
                      "what is left is within what the start varies by"
                      if row["ratio"] is None
                      else "%.1f times sooner" % row["ratio"],
                      row["processor"]["warm"],
                      row["processor"]["cold"], row["cache"]["compile"],
                      row["cache"]["link"],
                      " ".join(row["compilers"]) or "none"))
    return 0 if good and rows else 1


if __name__ == "__main__":
    sys.exit(main())
