#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples/scale against an installed library, as its reader would, and
runs it: with NVRTC where there is one, and without."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

LINES_AT_MOST = 59


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cc", "cmake", "example"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    if shutil.which("pkg-config") is None:
        print("skipped: pkg-config is not installed")
        return 77
    source = os.path.join(options.example, "scale.c")
    with open(source, encoding="utf-8") as file:
        lines = len(file.readlines())
    if lines > LINES_AT_MOST:
        raise SystemExit("%s has %d lines, more than %d" % (
            source, lines, LINES_AT_MOST))
    work = tempfile.mkdtemp(prefix="kiln-example-")
    try:
        run(options.cmake, "--install", options.build, "--prefix", work)
        path = find(work, "kiln.pc")
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "kiln",
                                PKG_CONFIG_PATH=path, PKG_CONFIG_LIBDIR=path))
        program = os.path.join(work, "scale")
        run(options.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic",
            source, "-o", program, *flags)
        lib = {"LD_LIBRARY_PATH": find(work, "libkiln.so")}
        for device in ([], ["soft"]):
            said = run(program, *device, cwd=options.example, **lib)
            print(said, end="")
            expect(said, "100000 values, 0 wrong")
        expect(said, "\"soft\"")
        said = run(program, "soft", cwd=options.example,
                   KILN_LOCATE_LIB_NVRTC="/nonexistent/libnvrtc.so", **lib)
        print(said, end="")
        expect(said, "shipped kernel")
        expect(said, "100000 values, 0 wrong")
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
