#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the pair of bench_transient, and beside it the same in Python.

    bench_transient.py PROGRAM [DEVICE]

PROGRAM is bench_transient; its results come first and its exit code is this
one's. Behind it 4 KiB are taken and given back in batches of the same size by
cuda.core (its pool of the device) and by CuPy (its own pool, and the driver's),
each where it can be imported and a GPU is there; otherwise a line says why not.
"""
import json
import statistics
import subprocess
import sys
import time

BYTES = 4096
PAIRS = 2000
ROUNDS = 51


def measure(pair, wait):
    """The median of the rounds, in nanoseconds for each pair."""
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(PAIRS):
            pair()
        spent.append((time.perf_counter_ns() - start) / PAIRS)
        wait()
    return statistics.median(spent)


def by_cuda_core():
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool = device.memory_resource
    return measure(lambda: pool.allocate(BYTES, stream=stream).close(stream),
                   stream.sync)


def with_cupy(make_pool):
    import cupy
    cupy.cuda.Device(0).use()
    pool = make_pool(cupy.cuda)
    stream = cupy.cuda.Stream(non_blocking=True)

    def pair():
        pool.malloc(BYTES)  # and given back at once, since nobody keeps it

    with stream:
        return measure(pair, stream.synchronize)


def by_cupy():
    return with_cupy(lambda cuda: cuda.MemoryPool())


def by_cupy_async():
    return with_cupy(lambda cuda: cuda.MemoryAsyncPool())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = subprocess.run(sys.argv[1:3], stdout=subprocess.PIPE, text=True,
                             check=False)
    print(program.stdout, end="")
    ours = None
    for line in program.stdout.splitlines():
        if line.startswith("{"):
            ours = json.loads(line)["benches"][0]["value"]
    for name, run in (("cuda.core", by_cuda_core), ("CuPy, its pool", by_cupy),
                      ("CuPy, the driver's pool", by_cupy_async)):
        try:
            spent = run()
        except Exception as error:  # whatever a package of others raises
            print(f"{name}: skipped: {type(error).__name__}: {error}")
            continue
        beside = f", {spent / ours:.1f} times a transient store" if ours else ""
        print(f"{name}: {spent:.1f} ns for each pair{beside}")
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
