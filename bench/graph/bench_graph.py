#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the graph of bench_graph, and beside it the same in Python.

    bench_graph.py PROGRAM [DEVICE]

PROGRAM is bench_graph; its results come first and its exit code is this one's.
Behind it a graph of 1,000 dependent kernels with the same four arguments is
added by hand, captured, made executable, updated and launched by cuda.core,
each step where that version of it has it; otherwise a line says why not.
"""
import json
import statistics
import subprocess
import sys
import time

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


def spent_of(step, parts):
    """The median of the rounds, in nanoseconds for each part; `step` gives a
    function that is measured, and one that ends what it made."""
    found = []
    for _ in range(ROUNDS):
        measured, end = step()
        start = time.perf_counter_ns()
        measured()
        found.append((time.perf_counter_ns() - start) / parts)
        end()
    return statistics.median(found)


def steps_of_cuda_core():
    import numpy
    from cuda.core import Device, LaunchConfig, ObjectCode, launch
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
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
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = subprocess.run(sys.argv[1:3], stdout=subprocess.PIPE, text=True,
                             check=False)
    print(program.stdout, end="", flush=True)
    if program.returncode == 77:
        return 77
    if len(sys.argv) > 2:
        for what in range(1, 7):
            bare = subprocess.run(sys.argv[1:3] + [str(what)], check=False)
            print(f"without a current context, {what}: exit code "
                  f"{bare.returncode}", flush=True)
    raw = {}
    for line in program.stdout.splitlines():
        if line.startswith("{"):
            for row in json.loads(line)["benches"]:
                raw[row["name"]] = row["baseline"]["value"]
    try:
        steps = steps_of_cuda_core()
    except Exception as error:  # whatever a package of others raises
        print(f"cuda.core: skipped: {type(error).__name__}: {error}")
        return program.returncode
    for name, step, parts, unit in steps:
        try:
            spent = spent_of(step, parts)
        except Exception as error:
            print(f"cuda.core: {name}: skipped: "
                  f"{type(error).__name__}: {error}")
            continue
        beside = ""
        if raw.get(name):
            beside = f", {spent / raw[name]:.2f} times the driver's own calls"
        print(f"cuda.core: {name}: {spent:.1f} {unit}{beside}")
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
