#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees tools/format --check fail on a planted breach, and repair it."""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

ARITHMETIC = """#define LOW16(x) ((uint32_t)(x) & 0xffffu)
int x;
TWO(mul_lo_b16, uint32_t, LOW16(a * b))
TWO(and_b32, uint32_t, a & b)
KILNI_LANES_BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a * b)
"""


def format_says(root, *arguments):
    return subprocess.run([os.path.join(root, "tools/format"), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def main():
    root = tempfile.mkdtemp(prefix="kiln-layout-")
    try:
        for folder in ("src", "include", "tests/layout", "bench", "examples",
                       "tools"):
            os.makedirs(os.path.join(root, folder))
        for path in ("tools/format", ".clang-format"):
            shutil.copy(os.path.join(ROOT, path), os.path.join(root, path))
        with open(os.path.join(root, "tests/layout/GENERATORS"), "w",
                  encoding="utf-8") as file:
            file.write("tools/gen.py: src/made_gen.h\n")
        ugly = "int  f( void ){return 3;}\n"
        for path, text in (("src/made_gen.h", ugly), ("src/a.c", "int x;\n")):
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        clean = format_says(root, "--check")
        if clean.returncode == 77:
            print(clean.stdout)
            return 77
        with open(os.path.join(root, "src/a.c"), "w",
                  encoding="utf-8") as file:
            file.write(ugly)
        broken = format_says(root, "--check")
        repaired = format_says(root)
        again = format_says(root, "--check")
        # Arithmetic in an argument of a macro: only the right form stays.
        with open(os.path.join(root, "src/a.c"), "w",
                  encoding="utf-8") as file:
            file.write(ARITHMETIC.replace(" * ", "* ").replace(" & b", "& b")
                       .replace(" & 0", "&0"))
        crammed = format_says(root, "--check", "src/a.c")
        spaced = format_says(root, "src/a.c")
        with open(os.path.join(root, "src/a.c"), encoding="utf-8") as file:
            kept = file.read() == ARITHMETIC
        right = (clean.returncode == 0 and broken.returncode != 0
                 and "src/a.c:1" in broken.stdout
                 and repaired.returncode == 0 and again.returncode == 0
                 and crammed.returncode == 1 and "src/a.c:1" in crammed.stdout
                 and spaced.returncode == 0 and kept)
        if not right:
            print(clean, broken, repaired, again, crammed, spaced, kept,
                  sep="\n")
        return 0 if right else 1
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
