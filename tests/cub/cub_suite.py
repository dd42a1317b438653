#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUB's and Thrust's algorithms on the software device, as by plain loops.

    cub_suite.py STAND_IN [--most N] [--workers N,...] [--keep DIR]

nvcc makes PTX and host code of cub_suite.cu and thrust_suite.cu; the host code
is linked with STAND_IN (cuda_runtime_stand_in.c) in the place of CUDA's runtime
library, and run with each number of workers, on sizes up to --most. Exits with 77 where
there is no nvcc or no CUB.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = ("cub_suite", "thrust_suite")
SKIP = 77


def nvcc_path():
    return shutil.which("nvcc") or shutil.which("nvcc",
                                                path="/usr/local/cuda/bin")


def run(*words, env=None):
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout


def build(nvcc, folder, suite, stand_in):
    """Why it cannot be built; None if it is."""
    words = [nvcc, "-std=c++17", "-O1", "-w"]
    source = os.path.join(HERE, suite + ".cu")
    program = os.path.join(folder, suite)
    if os.path.exists(program):
        return None
    steps = ([*words, "-ptx", "-arch=compute_75", source, "-o",
              program + ".ptx"],
             [*words, "-c", "-cudart", "none", "-gencode",
              "arch=compute_75,code=compute_75", source, "-o",
              program + ".o"],
             ["c++", program + ".o", stand_in,
              "-Wl,-rpath," + os.path.dirname(stand_in), "-o", program])
    for step in steps:
        code, said = run(*step)
        if code:
            return said
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stand_in", type=os.path.abspath)
    parser.add_argument("--most", default="3000000")
    parser.add_argument("--workers", default="1,2,8")
    parser.add_argument("--keep")
    given = parser.parse_args()
    nvcc = nvcc_path()
    if nvcc is None:
        print("skip: no nvcc")
        return SKIP
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or made
        probe = os.path.join(made, "probe.cu")
        with open(probe, "w", encoding="ascii") as file:
            file.write("#include <cub/version.cuh>\n")
        if run(nvcc, "-E", probe)[0]:
            print("skip: no CUB beside nvcc")
            return SKIP
        bad = 0
        for suite in SUITES:
            problem = build(nvcc, folder, suite, given.stand_in)
            if problem is not None:
                print("%s cannot be built:\n%s" % (suite, problem))
                return 1
            program = os.path.join(folder, suite)
            for workers in given.workers.split(","):
                code, said = run(program, given.most, env={
                    "KILN_TEST_PTX": program + ".ptx",
                    "KILN_TEST_WORKERS": workers})
                print("%s, %s workers:\n%s" % (suite, workers, said.rstrip()))
                bad += code != 0
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
