#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the graph of bench_graph, and beside it the same in Python.

    bench_graph.py PROGRAM [DEVICE]

PROGRAM is bench_graph; its results come first and its exit code is this one's.
Behind it a graph of 1,000 dependent kernels with the same four arguments is
added by hand, captured, made executable, updated and launched by cuda.core,
each step where that version of it has it; otherwise a line says why not.
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import bench_beside  # noqa: E402

NODES = 1000
ROUNDS = 11
LAUNCHES = 20
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,
    .param .u64 y) { ret; }
"""


def steps_of_cuda_core():
    import numpy
    from cuda.core import LaunchConfig, ObjectCode, launch
    device, stream = bench_beside.cuda_core_device()
    kernel = ObjectCode.from_ptx(PTX).get_kernel("nothing")
    buffer = device.allocate(4096, stream=stream)
    config = LaunchConfig(grid=1, block=32)
    args = (buffer, numpy.float32(2), numpy.uint32(1000), buffer)

    def captured():
        builder = device.create_graph_builder().begin_building()
        for _ in range(NODES):
            launch(builder, config, kernel, *args)
        return builder.end_building()

    def by_hand():
        from cuda.core.graph import GraphDefinition
        graph = GraphDefinition()

        def add():
            node = graph.launch(config, kernel, *args)
            for _ in range(NODES - 1):
                node = node.launch(config, kernel, *args)
        return add, lambda: None

    def capture():
        made = []
        return (lambda: made.append(captured()),
                lambda: made.pop().close())

    def instantiate():
        builder = captured()
        return builder.complete, builder.close

    def update():
        builder = captured()
        graph = builder.complete()
        other = captured()

        def end():
            graph.close()
            builder.close()
            other.close()
        return (lambda: graph.update(other)), end

    def launch_it():
        builder = captured()
        graph = builder.complete()
        graph.launch(stream)
        stream.sync()

        def run():
            for _ in range(LAUNCHES):
                graph.launch(stream)

        def end():
            stream.sync()
            graph.close()
            builder.close()
        return run, end

    return (("node by hand", by_hand, NODES, "ns"),
            ("captured kernel", capture, NODES, "ns"),
            ("instantiate", instantiate, 1000, "us"),
            ("update as a whole", update, 1000, "us"),
            ("launch", launch_it, LAUNCHES, "ns"))


def main():
    argv = bench_beside.arguments(__doc__)
    code, rows = bench_beside.run_program(argv)
    if code == bench_beside.SKIPPED:
        return code
    if len(argv) > 1:
        for what in range(1, 7):
            bare = subprocess.run(argv + [str(what)], check=False)
            print(f"without a current context, {what}: exit code "
                  f"{bare.returncode}", flush=True)
    steps = bench_beside.tried("cuda.core", steps_of_cuda_core)
    for name, step, parts, unit in steps or ():
        spent = bench_beside.tried(
            f"cuda.core: {name}",
            lambda: bench_beside.measure_made(step, parts, ROUNDS))
        if spent is None:
            continue
        beside = ""
        if name in rows:
            raw = rows[name]["baseline"]["value"]
            beside = f", {spent / raw:.2f} times the driver's own calls"
        print(f"cuda.core: {name}: {spent:.1f} {unit}{beside}")
    return code


if __name__ == "__main__":
    sys.exit(main())
