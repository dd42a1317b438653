#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `kiln find` takes beside the real cuda-pathfinder.

    bench_pathfinder.py --kiln PROGRAM --environments FOLDER [--runs N]
                        [--cold] [--clean] [--nothing PROGRAM]
                        [--spawn PROGRAM] [--report FILE]

FOLDER is what tools/wheels.py made. Whole processes, interleaved, in the
environments with wheels of CUDA 13 and 12: one library found and versioned
(pathfinder: its own find step, which nothing public offers, and no version),
and the whole catalog without loading (pathfinder: every look-up it has, and
the same find step for the libraries). With --cold the page cache is dropped
before each run, of fewer runs (takes root, and slows the whole machine).
With --clean this machine's own CUDA is hidden first. --nothing is a program
that does nothing (bench_nothing beside bench_find): how much faster Kiln is, is
also said without what such a process takes of both. --spawn is a small program
that starts the others and takes the time (bench_spawn, beside it too): Python
itself adds a fifth of a millisecond to each. System calls are counted
where strace is. Prints a table and JSON.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                "tests", "pathfinder"))
sys.dont_write_bytecode = True

import sidebyside  # noqa: E402

FIND = """
from cuda.pathfinder._dynamic_libs import search_steps as steps
from cuda.pathfinder._dynamic_libs.lib_descriptor import LIB_DESCRIPTORS
def find(name):
    at = steps.SearchContext(LIB_DESCRIPTORS[name])
    return (steps.run_find_steps(at, steps.EARLY_FIND_STEPS) or
            steps.run_find_steps(at, steps.LATE_FIND_STEPS))
"""
ONE = FIND + "assert find(%r)\n"
ALL = """
import warnings
warnings.simplefilter("ignore")
import cuda.pathfinder as pathfinder
from cuda.pathfinder._headers.header_descriptor import HEADER_DESCRIPTORS
""" + FIND + """
for name in LIB_DESCRIPTORS:
    find(name)
for name in HEADER_DESCRIPTORS:
    pathfinder.locate_nvidia_header_directory(name)
for name in pathfinder.SUPPORTED_BINARY_UTILITIES:
    pathfinder.find_nvidia_binary_utility(name)
for locate, names in (
        (pathfinder.locate_static_lib, pathfinder.SUPPORTED_STATIC_LIBS),
        (pathfinder.locate_bitcode_lib, pathfinder.SUPPORTED_BITCODE_LIBS)):
    for name in names:
        try:
            locate(name)
        except RuntimeError:
            pass
"""


def once(command, env, spawn=None):
    """Milliseconds of one process, from its start to its end."""
    if spawn:
        done = subprocess.run([spawn, *command], env=env, check=False,
                              stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit("%s ended with %d" % (command, done.returncode))
        return int(done.stdout) / 1e6
    quiet = [(os.POSIX_SPAWN_OPEN, stream, "/dev/null", os.O_WRONLY, 0)
             for stream in (1, 2)]
    started = time.perf_counter()
    child = os.posix_spawn(command[0], command, env, file_actions=quiet)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    took = (time.perf_counter() - started) * 1000
    if code:
        raise SystemExit("%s ended with %d" % (command, code))
    return took


def drop_caches():
    subprocess.run(["sync"], check=True)
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3\n")


def measure(commands, env, runs, cold, spawn):
    """Times of each command, taken in turn."""
    times = [[] for _ in commands]
    for run in range(runs + 1):
        for command, taken in zip(commands, times):
            if cold:
                drop_caches()
            took = once(command, env, spawn)
            if run or cold:  # the first warms up
                taken.append(took)
    return times


def system_calls(command, env):
    """(all, stats, opens, programs started), or None without strace."""
    try:
        done = subprocess.run(
            ["strace", "-f", "-c", "-U", "name,calls", *command], env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    counts = {name: int(count) for name, count in re.findall(
        r"^ *(\w+) +(\d+)$", done.stderr, re.M)}
    total = counts.pop("total", 0)
    stats = sum(count for name, count in counts.items()
                if "stat" in name and "statfs" not in name)
    return (total, stats, counts.get("openat", 0), counts.get("execve", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--environments", required=True)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--nothing", default="/bin/true")
    parser.add_argument("--spawn")
    parser.add_argument("--report")
    options = parser.parse_args()
    if options.clean:
        return sidebyside.in_clean_machine(
            os.path.abspath(options.environments))
    with open(os.path.join(options.environments, "environments.json"),
              encoding="utf-8") as file:
        made = json.load(file)
    load = os.getloadavg()[0]
    name = "nvrtc" if made["all"] else "cudart"
    kiln = os.path.abspath(options.kiln)
    lines, benches = [], []
    nothing = [os.path.abspath(options.nothing)]
    spawn = options.spawn and os.path.abspath(options.spawn)
    for environment in made["environments"]:
        if environment["name"] not in ("cu13", "cu12"):
            continue
        env = sidebyside.variables(environment)
        python = os.path.join(environment["venv"], "bin", "python")
        for what, ours, theirs in (
                ("find " + name, [kiln, "find", "lib", name],
                 [python, "-I", "-c", ONE % name]),
                ("whole catalog", [kiln, "find", "--all"],
                 [python, "-I", "-c", ALL])):
            runs = min(options.runs, 9) if options.cold else options.runs
            mine, other, least = measure([ours, theirs, nothing], env, runs,
                                         options.cold, spawn)
            ratio = statistics.median(other) / statistics.median(mine)
            floor = statistics.median(least)
            # What is left where both do nothing but what they are asked.
            rest = max(statistics.median(mine) - floor, 0.001)
            beyond = (statistics.median(other) - floor) / rest
            most = statistics.median(other) / floor
            calls = [system_calls(one, env) for one in (ours, theirs)]
            lines.append("| %s | %s | %.2f / %.2f | %.2f / %.2f | %.0f / %.0f "
                         "| %.0f | %.0f | %.0f | %s | %s |" % (
                             environment["name"], what, min(least), floor,
                             min(mine), statistics.median(mine), min(other),
                             statistics.median(other), ratio, most, beyond, *(
                                 " ".join(map(str, one)) if one else "-"
                                 for one in calls)))
            benches.append({
                "name": "%s, %s%s" % (what, environment["name"],
                                      ", cold" if options.cold else ""),
                "unit": "ms", "value": statistics.median(mine),
                "least": min(mine),
                "ratio_of_least": min(other) / min(mine),
                "baseline": {"name": "cuda-pathfinder",
                             "value": statistics.median(other)},
                "ratio": ratio})
    text = "\n".join([
        "## %s, %s%d runs" % ("Own CUDA hidden" if options.hidden
                              else "This machine",
                              "cold, " if options.cold else "", runs), "",
        "Milliseconds as least / median. `nothing` is a process that does "
        "nothing (%s): no program could be more than `at most` times faster; "
        "`without it` leaves it out of both. System calls as all, stat, "
        "openat, execve. Load when it began: %.1f."
        % (os.path.basename(nothing[0]), load), "",
        "| environment | what | nothing | kiln | cuda-pathfinder | "
        "times faster | at most | without it | kiln's calls | "
        "pathfinder's calls |", "|---|---|---|---|---|---|---|---|---|---|",
        *lines, ""])
    print(text)
    print(json.dumps({"device": None, "benches": benches}, indent=1))
    if options.report:
        new = not os.path.exists(options.report)
        with open(options.report, "a", encoding="utf-8") as file:
            if new:
                file.write("# How long it takes beside cuda-pathfinder\n\n"
                           "Written by `bench/locate/bench_pathfinder.py` on "
                           "%s.\n\n" % time.strftime("%Y-%m-%d"))
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
