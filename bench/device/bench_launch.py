#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the launch of bench_launch, and beside it the same in Python.

    bench_launch.py PROGRAM [DEVICE]

PROGRAM is bench_launch; its results come first and its exit code is this one's.
Behind it the same kernel with the same four arguments is launched by cuda.core
and by CuPy, in batches of the same size, each where it can be imported and a
GPU is there; otherwise a line says why not.
"""
import json
import statistics
import subprocess
import sys
import time

LAUNCHES = 400
ROUNDS = 101
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,
    .param .u64 y) { ret; }
"""


def measure(launch, wait):
    """The median of the rounds, in nanoseconds for each launch."""
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(LAUNCHES):
            launch()
        spent.append((time.perf_counter_ns() - start) / LAUNCHES)
        wait()
    return statistics.median(spent)


def by_cuda_core():
    import numpy
    from cuda.core import Device, LaunchConfig, ObjectCode, launch
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(PTX).get_kernel("nothing")
    buffer = device.allocate(4096, stream=stream)
    config = LaunchConfig(grid=1, block=32)
    args = (buffer, numpy.float32(2), numpy.uint32(1000), buffer)
    return measure(lambda: launch(stream, config, kernel, *args), stream.sync)


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
        return measure(lambda: kernel((1,), (32,), args), stream.synchronize)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = subprocess.run(sys.argv[1:3], stdout=subprocess.PIPE, text=True,
                             check=False)
    print(program.stdout, end="")
    if program.returncode == 77:
        return 77
    raw = None
    for line in program.stdout.splitlines():
        if line.startswith("{"):
            raw = json.loads(line)["benches"][0]["value"]
    for name, run in (("cuda.core", by_cuda_core), ("CuPy", by_cupy)):
        try:
            spent = run()
        except Exception as error:  # whatever a package of others raises
            print(f"{name}: skipped: {type(error).__name__}: {error}")
            continue
        beside = f", {spent / raw:.2f} times the driver's call" if raw else ""
        print(f"{name}: {spent:.1f} ns for each launch{beside}")
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
