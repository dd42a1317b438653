#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All figures of `kiln find` in one table, beside what they are to be.

    bench_figures.py --build FOLDER --environments FOLDER [--runs N]
                     [--no-cold] [--report FILE]

FOLDER of --build is a build tree with the benchmarks (build/release), that of
--environments is what tools/wheels.py made. Runs bench_pathfinder.py warm and,
as root, with dropped caches (--no-cold leaves that out), and bench_toolkit in
the environment with wheels of CUDA 13. Prints one line for each bar and then
their tables. --report writes it to a file, too. On a machine that does
something else besides, only the least of the times means anything.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                "tests", "pathfinder"))
sys.dont_write_bytecode = True

import sidebyside  # noqa: E402


def pathfinder(options, extra):
    """(text, benches) of bench_pathfinder.py."""
    locate = os.path.join(options.build, "bench", "locate")
    command = [sys.executable, "-B", os.path.join(HERE, "bench_pathfinder.py"),
               "--kiln", os.path.join(options.build, "src", "cli", "kiln"),
               "--environments", options.environments,
               "--nothing", os.path.join(locate, "bench_nothing"),
               "--spawn", os.path.join(locate, "bench_spawn"),
               "--runs", str(options.runs), *extra]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    at = said.index('\n{\n "device"')
    return said[:at], json.loads(said[at:])["benches"]


def toolkit(options):
    """(text, {name: microseconds}) of bench_toolkit with wheels of CUDA 13."""
    with open(os.path.join(options.environments, "environments.json"),
              encoding="utf-8") as file:
        made = json.load(file)
    environment = next(one for one in made["environments"]
                       if one["name"] == "cu13")
    done = subprocess.run(
        [os.path.join(options.build, "bench", "toolkit", "bench_toolkit")],
        env=sidebyside.variables(environment), check=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = json.loads(done.stdout)["benches"]
    return done.stderr, {row["name"]: row["value"] for row in rows}


def bars(warm, cold, inside):
    """(what, bar, median, least, met) of each bar."""
    for bench in warm:
        one = not bench["name"].startswith("whole")
        limit = 1.2 if one else 5.0
        yield ("%s, process" % bench["name"], "< %.1f ms" % limit,
               "%.2f ms" % bench["value"], "%.2f ms" % bench["least"],
               bench["value"] < limit)
        if one:
            yield ("%s, times faster than cuda-pathfinder" % bench["name"],
                   "> 100", "%.0f" % bench["ratio"],
                   "%.0f" % bench["ratio_of_least"], bench["ratio"] > 100)
    for bench in cold:
        yield ("%s, times faster" % bench["name"], "> 10",
               "%.0f" % bench["ratio"], "%.0f" % bench["ratio_of_least"],
               bench["ratio"] > 10)
    for what, limit in (("new context, found, line known", 50),
                        ("new context, found, release known", 50),
                        ("whole catalog, lines known", 5000),
                        ("whole catalog, releases known", 5000)):
        name = "inside: " + what
        value, least = inside[name], inside[name + ", least"]
        yield ("in process: " + what, "< %d us" % limit, "%.1f us" % value,
               "%.1f us" % least, value < limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--environments", required=True)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--no-cold", action="store_true")
    parser.add_argument("--report")
    options = parser.parse_args()
    load = os.getloadavg()
    warm_text, warm = pathfinder(options, [])
    cold_text, cold = "", []
    if not options.no_cold and os.geteuid() == 0:
        cold_text, cold = pathfinder(options, ["--cold"])
    inside_text, inside = toolkit(options)
    lines = ["| %s | %s | %s | %s | %s |" % (*row[:4],
                                            "yes" if row[4] else "**no**")
             for row in bars(warm, cold, inside)]
    text = "\n".join([
        "# What `kiln find` takes", "",
        "Written by `bench/locate/bench_figures.py` on %s: %s, %d cores, "
        "Linux %s; load before and after %.1f and %.1f." % (
            time.strftime("%Y-%m-%d"), platform.machine(), os.cpu_count(),
            platform.release(), load[0], os.getloadavg()[0]), "",
        "| what | bar | median | least | met by the median |",
        "|---|---|---|---|---|", *lines, "", warm_text, cold_text,
        "## In process, as `bench_toolkit` prints it", "", "```",
        inside_text.rstrip(), "```", ""])
    print(text)
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
