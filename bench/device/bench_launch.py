#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the launch of bench_launch, and beside it the same in Python.

    bench_launch.py PROGRAM [DEVICE]

PROGRAM is bench_launch; its results come first and its exit code is this one's.
Behind it the same kernel with the same four arguments is launched by cuda.core
and by CuPy, in batches of the same size, each where it can be imported and a
GPU is there; otherwise a line says why not.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import bench_beside  # noqa: E402

LAUNCHES = 400
ROUNDS = 101
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,
    .param .u64 y) { ret; }
"""


def by_cuda_core():
    import numpy
    from cuda.core import LaunchConfig, ObjectCode, launch
    device, stream = bench_beside.cuda_core_device()
    kernel = ObjectCode.from_ptx(PTX).get_kernel("nothing")
    buffer = device.allocate(4096, stream=stream)
    config = LaunchConfig(grid=1, block=32)
    args = (buffer, numpy.float32(2), numpy.uint32(1000), buffer)
    return bench_beside.measure(lambda: launch(stream, config, kernel, *args),
                                stream.sync, LAUNCHES, ROUNDS)


def by_cupy():
    import cupy
    import numpy
    cupy.cuda.Device(0).use()
    module = cupy.cuda.function.Module()
    module.load(PTX)
    kernel = module.get_function("nothing")
    buffer = cupy.zeros(1024, dtype=cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    args = (buffer, numpy.float32(2), numpy.uint32(1000), buffer)
    with stream:
        return bench_beside.measure(lambda: kernel((1,), (32,), args),
                                    stream.synchronize, LAUNCHES, ROUNDS)


def main():
    code, rows = bench_beside.run_program(bench_beside.arguments(__doc__))
    if code == bench_beside.SKIPPED:
        return code
    raw = next(iter(rows.values()))["value"] if rows else None
    for name, run in (("cuda.core", by_cuda_core), ("CuPy", by_cupy)):
        spent = bench_beside.tried(name, run)
        if spent is None:
            continue
        beside = f", {spent / raw:.2f} times the driver's call" if raw else ""
        print(f"{name}: {spent:.1f} ns for each launch{beside}")
    return code


if __name__ == "__main__":
    sys.exit(main())
