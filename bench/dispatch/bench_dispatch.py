#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the dispatches of bench_dispatch, and beside them the same in Python.

    bench_dispatch.py PROGRAM [DEVICE]

PROGRAM is bench_dispatch; its results come first and its exit code is this
one's. Behind it, by cuda.core and by CuPy where they can be imported: launches
of a kernel with four resident buffers and a scalar, a sequence of 1,000
dependent ones as a CUDA graph, and 1 GiB between pageable memory, whose pages
are touched, and the device; otherwise a line says why not.
"""
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import bench_beside  # noqa: E402

LAUNCHES = 400
ROUNDS = 51
NODES = 1000
GRAPH_ROUNDS = 21
COPY_BYTES = 1 << 30
COPY_ROUNDS = 5
ELEMENTS = 32
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry four(.param .u64 x, .param .u64 nx, .param .u64 y,
    .param .u64 ny, .param .u64 k, .param .u64 nk, .param .u64 z,
    .param .u64 nz, .param .u32 a)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<10>;
  ld.param.u64 %d1, [x];
  ld.param.u64 %d2, [y];
  ld.param.u64 %d3, [k];
  ld.param.u64 %d4, [z];
  ld.param.u32 %r1, [a];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d5, %r2, 4;
  add.u64 %d6, %d1, %d5;
  add.u64 %d7, %d2, %d5;
  add.u64 %d8, %d4, %d5;
  ld.global.u32 %r3, [%d6];
  ld.global.u32 %r4, [%d7];
  ld.global.u32 %r5, [%d3];
  mad.lo.u32 %r6, %r4, %r5, %r3;
  add.u32 %r7, %r6, %r1;
  st.global.u32 [%d8], %r7;
  ret;
}
"""


def timed(step, rounds):
    """The best of the rounds, in seconds; the first is not counted."""
    step()
    best = None
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        spent = time.perf_counter() - start
        best = spent if best is None else min(best, spent)
    return best


def report(name, spent, unit, rows, beside):
    """One line: per launch, with the row of the program beside it."""
    line = f"{name}: {spent:.1f} {unit}"
    if beside in rows:
        line += (f", {spent / rows[beside]['value']:.2f} times {beside} of "
                 "the program above")
    print(line, flush=True)


# ---- cuda.core ----

def cuda_core_parts():
    """Device, stream, kernel, shape and arguments."""
    import numpy
    from cuda.core import LaunchConfig, ObjectCode
    device, stream = bench_beside.cuda_core_device()
    kernel = ObjectCode.from_ptx(PTX).get_kernel("four")
    buffers = [device.allocate(4 * ELEMENTS, stream=stream) for _ in range(4)]
    count = numpy.uint64(ELEMENTS)
    args = []
    for buffer in buffers:
        args += [buffer, count]
    return (device, stream, kernel, LaunchConfig(grid=1, block=ELEMENTS),
            args + [numpy.uint32(5)])


def dispatch_by_cuda_core():
    from cuda.core import launch
    _, stream, kernel, config, args = cuda_core_parts()
    return bench_beside.measure(lambda: launch(stream, config, kernel, *args),
                                stream.sync, LAUNCHES, ROUNDS)


def sequence_by_cuda_core():
    from cuda.core import launch
    device, stream, kernel, config, args = cuda_core_parts()
    builder = device.create_graph_builder().begin_building()
    for _ in range(NODES):
        launch(builder, config, kernel, *args)
    graph = builder.end_building().complete()

    def run():
        graph.launch(stream)
        stream.sync()
    spent = timed(run, GRAPH_ROUNDS)
    graph.close()
    return spent / NODES * 1e9


def copies_by_cuda_bindings(upward):
    """cuda.core itself copies no pageable memory: the driver call of its
    bindings does."""
    import numpy
    from cuda.bindings import driver
    device, stream = bench_beside.cuda_core_device()
    host = numpy.ones(COPY_BYTES, dtype=numpy.uint8)
    buffer = device.allocate(COPY_BYTES, stream=stream)
    stream.sync()
    address = int(buffer.handle)

    def run():
        if upward:
            result, = driver.cuMemcpyHtoD(address, host.ctypes.data,
                                          COPY_BYTES)
        else:
            result, = driver.cuMemcpyDtoH(host.ctypes.data, address,
                                          COPY_BYTES)
        if int(result) != 0:
            raise RuntimeError(f"the copy gave {result}")
    spent = timed(run, COPY_ROUNDS)
    buffer.close(stream)
    return COPY_BYTES / spent / 1e9


# ---- CuPy ----

def cupy_parts():
    """CuPy, stream, kernel and arguments."""
    import cupy
    import numpy
    cupy.cuda.Device(0).use()
    module = cupy.cuda.function.Module()
    module.load(PTX)
    kernel = module.get_function("four")
    count = numpy.uint64(ELEMENTS)
    args = []
    for _ in range(4):
        args += [cupy.zeros(ELEMENTS, dtype=cupy.uint32), count]
    return (cupy, cupy.cuda.Stream(non_blocking=True), kernel,
            tuple(args + [numpy.uint32(5)]))


def dispatch_by_cupy():
    _, stream, kernel, args = cupy_parts()
    with stream:
        return bench_beside.measure(lambda: kernel((1,), (ELEMENTS,), args),
                                    stream.synchronize, LAUNCHES, ROUNDS)


def sequence_by_cupy():
    _, stream, kernel, args = cupy_parts()
    with stream:
        stream.begin_capture()
        for _ in range(NODES):
            kernel((1,), (ELEMENTS,), args)
        graph = stream.end_capture()

    def run():
        graph.launch(stream)
        stream.synchronize()
    return timed(run, GRAPH_ROUNDS) / NODES * 1e9


def copies_by_cupy(upward):
    import cupy
    import numpy
    cupy.cuda.Device(0).use()
    host = numpy.ones(COPY_BYTES, dtype=numpy.uint8)
    array = cupy.zeros(COPY_BYTES, dtype=cupy.uint8)
    stream = cupy.cuda.Stream.null

    def run():
        if upward:
            array.set(host)
        else:
            array.get(out=host)
        stream.synchronize()
    return COPY_BYTES / timed(run, COPY_ROUNDS) / 1e9


def main():
    code, rows = bench_beside.run_program(bench_beside.arguments(__doc__))
    if code == bench_beside.SKIPPED:
        return code
    steps = (
        ("cuda.core: dispatch", dispatch_by_cuda_core, "ns",
         "kiln_prepared_run"),
        ("CuPy: dispatch", dispatch_by_cupy, "ns", "kiln_prepared_run"),
        ("cuda.core: each of a sequence of 1,000 (graph), to its end",
         sequence_by_cuda_core, "ns", ""),
        ("CuPy: each of a sequence of 1,000 (graph), to its end",
         sequence_by_cupy, "ns", ""),
        ("cuda.bindings: pageable upload of 1 GiB",
         lambda: copies_by_cuda_bindings(True), "GB/s", ""),
        ("cuda.bindings: pageable download of 1 GiB",
         lambda: copies_by_cuda_bindings(False), "GB/s", ""),
        ("CuPy: pageable upload of 1 GiB", lambda: copies_by_cupy(True),
         "GB/s", ""),
        ("CuPy: pageable download of 1 GiB", lambda: copies_by_cupy(False),
         "GB/s", ""),
    )
    for name, run, unit, beside in steps:
        spent = bench_beside.tried(name, run)
        if spent is not None:
            report(name, spent, unit, rows, beside)
    return code


if __name__ == "__main__":
    sys.exit(main())
