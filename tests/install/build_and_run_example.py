#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the examples in C against an installed library, as their reader would,
and runs them from another folder: scale with NVRTC where there is one, and
without."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

LINES_AT_MOST = {"scale/scale.c": 59, "program/brighter.c": 86,
                 "program/built.c": 85, "library/sort_and_sum.c": 70,
                 "dispatch/pipeline.c": 60, "dispatch/sequence.c": 90,
                 "dispatch/graph.c": 110}


def run(*command, cwd=None, **variables):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False, cwd=cwd,
                            env={**os.environ, **variables})
    if result.returncode != 0:
        raise SystemExit("%s\n%s\nexit %d" % (
            shlex.join(command), result.stdout, result.returncode))
    return result.stdout


def find(root, name):
    for folder, _, files in os.walk(root):
        if name in files:
            return folder
    raise SystemExit("%s is not installed below %s" % (name, root))


def expect(said, word):
    if word not in said:
        raise SystemExit("no \"%s\" in:\n%s" % (word, said))


def check_length(examples, name):
    path = os.path.join(examples, name)
    with open(path, encoding="utf-8") as file:
        lines = len(file.readlines())
    if lines > LINES_AT_MOST[name]:
        raise SystemExit("%s has %d lines, more than %d" % (
            path, lines, LINES_AT_MOST[name]))


def run_scale(program, folder, lib):
    for device in ([], ["soft"]):
        said = run(program, *device, cwd=folder, **lib)
        print(said, end="")
        expect(said, "100000 values, 0 wrong")
    expect(said, "\"soft\"")
    said = run(program, "soft", cwd=folder,
               KILN_LOCATE_LIB_NVRTC="/nonexistent/libnvrtc.so", **lib)
    print(said, end="")
    expect(said, "shipped kernel")
    expect(said, "100000 values, 0 wrong")


def run_brighter(program, folder, lib):
    for device in ([], ["soft"]):
        said = run(program, *device, cwd=folder, **lib)
        print(said, end="")
        expect(said, "1000 values on \"")
        expect(said, ", 0 wrong")


def run_built(program, folder, lib):
    said = run(program, "1", "0", "2.5", cwd=folder, **lib)
    print(said, end="")
    expect(said, "\n1 3.5 11 23.5 41 63.5 91 123.5 161 203.5")


def run_sort(program, folder, lib):
    for device in ([], ["soft"]):
        said = run(program, *device, cwd=folder, **lib)
        print(said, end="")
        expect(said, "100000 numbers on \"")
        expect(said, ", 0 out of order, sum right")


def run_and_see(*words):
    """A check: on each device it says these words."""
    def check(program, folder, lib):
        for device in ([], ["soft"]):
            said = run(program, *device, cwd=folder, **lib)
            print(said, end="")
            for word in words:
                expect(said, word)
    return check


RUNS = {"scale/scale.c": run_scale, "program/brighter.c": run_brighter,
        "program/built.c": run_built, "library/sort_and_sum.c": run_sort,
        "dispatch/pipeline.c": run_and_see("1000 values on", ", 0 wrong"),
        "dispatch/sequence.c": run_and_see("100 steps on", "mean 25.000",
                                           "0 of 1024 differ"),
        "dispatch/graph.c": run_and_see("3 launches of 4 nodes", ", 0 wrong")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cc", "cmake", "examples"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    if shutil.which("pkg-config") is None:
        print("skipped: pkg-config is not installed")
        return 77
    work = tempfile.mkdtemp(prefix="kiln-example-")
    try:
        run(options.cmake, "--install", options.build, "--prefix", work)
        path = find(work, "kiln.pc")
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "kiln",
                                PKG_CONFIG_PATH=path, PKG_CONFIG_LIBDIR=path))
        lib = {"LD_LIBRARY_PATH": find(work, "libkiln.so")}
        for name, check in RUNS.items():
            check_length(options.examples, name)
            source = os.path.join(options.examples, name)
            program = os.path.join(work, "program")
            run(options.cc, "-std=c11", "-Wall", "-Wextra", "-Werror",
                "-pedantic", source, "-o", program, *flags)
            check(program, work, lib)
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
