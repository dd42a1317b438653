# SPDX-License-Identifier: Apache-2.0
"""bench: what the benches share that set the same job in Python beside a
program of Kiln's: the program is run, the other libraries are timed, and what
cannot be imported is told and no failure. Not a program."""
import json
import statistics
import subprocess
import sys
import time

SKIPPED = 77


def run_program(argv):
    """Runs a bench, shows what it prints, and gives its exit code and its
    rows by name."""
    program = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                             check=False)
    print(program.stdout, end="", flush=True)
    rows = {}
    for line in program.stdout.splitlines():
        if line.startswith("{"):
            for row in json.loads(line)["benches"]:
                rows[row["name"]] = row
    return program.returncode, rows


def measure(step, wait, parts, rounds):
    """The median of the rounds, in nanoseconds for each of `parts` calls of
    `step`; `wait` comes behind each round."""
    spent = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(parts):
            step()
        spent.append((time.perf_counter_ns() - start) / parts)
        wait()
    return statistics.median(spent)


def measure_made(make, parts, rounds):
    """The same where each round makes what it measures: `make` gives a
    function that is measured, once, and one that ends what it made."""
    spent = []
    for _ in range(rounds):
        measured, end = make()
        start = time.perf_counter_ns()
        measured()
        spent.append((time.perf_counter_ns() - start) / parts)
        end()
    return statistics.median(spent)


def cuda_core_device():
    """The first GPU of cuda.core, current, and a stream of it."""
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    return device, device.create_stream()


def tried(name, run):
    """What `run` gives; None, and a line, where a library is not there or
    cannot do it."""
    try:
        return run()
    except Exception as error:  # whatever a package of others raises
        print(f"{name}: skipped: {type(error).__name__}: {error}")
        return None


def arguments(text):
    """The command line of the program, or the end with `text`."""
    if len(sys.argv) < 2:
        sys.exit(text)
    return sys.argv[1:3]
