#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the pair of bench_transient, and beside it the same in Python.

    bench_transient.py PROGRAM [DEVICE]

PROGRAM is bench_transient; its results come first and its exit code is this
one's. Behind it 4 KiB are taken and given back in batches of the same size by
cuda.core (its pool of the device) and by CuPy (its own pool, and the driver's),
each where it can be imported and a GPU is there; otherwise a line says why not.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import bench_beside  # noqa: E402

BYTES = 4096
PAIRS = 2000
ROUNDS = 51


def by_cuda_core():
    device, stream = bench_beside.cuda_core_device()
    pool = device.memory_resource
    return bench_beside.measure(
        lambda: pool.allocate(BYTES, stream=stream).close(stream),
        stream.sync, PAIRS, ROUNDS)


def with_cupy(make_pool):
    import cupy
    cupy.cuda.Device(0).use()
    pool = make_pool(cupy.cuda)
    stream = cupy.cuda.Stream(non_blocking=True)

    def pair():
        pool.malloc(BYTES)  # and given back at once, since nobody keeps it

    with stream:
        return bench_beside.measure(pair, stream.synchronize, PAIRS, ROUNDS)


def by_cupy():
    return with_cupy(lambda cuda: cuda.MemoryPool())


def by_cupy_async():
    return with_cupy(lambda cuda: cuda.MemoryAsyncPool())


def main():
    code, rows = bench_beside.run_program(bench_beside.arguments(__doc__))
    ours = next(iter(rows.values()))["value"] if rows else None
    for name, run in (("cuda.core", by_cuda_core), ("CuPy, its pool", by_cupy),
                      ("CuPy, the driver's pool", by_cupy_async)):
        spent = bench_beside.tried(name, run)
        if spent is None:
            continue
        beside = f", {spent / ours:.1f} times a transient store" if ours else ""
        print(f"{name}: {spent:.1f} ns for each pair{beside}")
    return code


if __name__ == "__main__":
    sys.exit(main())
