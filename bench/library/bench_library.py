#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the rows of bench_library beside NVIDIA's own libraries.

    bench_library.py PROGRAM [DEVICE [LOG]]

PROGRAM is bench_library; its results come first. Where nvcc is on the path, or
in CUDA_PATH or CUDA_HOME, bench_library_beside.cu (CUB, cuBLAS, cuFFT) is
compiled, kept beside PROGRAM and run behind it on the same GPU; otherwise a
line says that it was not. Then the bars: a row is judged where both are there,
or where it is put against the copy or the reading of the same run. The exit
code is PROGRAM's, or 1 where a bar does not hold, or 77 where there is no
device.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import bench_beside  # noqa: E402

# (the beginning of a row's name, what it is put against, at least):
# "library": the row of the same name there; "copy": the driver's copy, read
# and written; "read": the fastest read of a hand-written kernel there.
BARS = (
    ("fold f32 2", "library", 0.9),
    ("scan u32 2", "library", 0.9),
    ("compact u32, half kept", "library", 0.9),
    ("histogram u8", "library", 0.9),
    ("sort keys u32", "library", 0.9),
    ("sort pairs u32", "library", 0.9),
    ("segments f32 of 32 ", "library", 5.0),
    ("transpose", "copy", 0.9),
    ("softmax of", "copy", 0.9),
    ("normalize of", "copy", 0.9),
    ("blake3 of", "read", 0.8),
    ("crc32 of", "read", 0.8),
)


def compiler():
    """nvcc, or None."""
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        path = Path(os.environ.get(variable, "")) / "bin/nvcc"
        if os.environ.get(variable) and path.exists():
            return str(path)
    return shutil.which("nvcc")


def build_beside(program):
    """The path of the program of the other libraries, or None and a line."""
    source = Path(__file__).resolve().with_name("bench_library_beside.cu")
    made = Path(program).resolve().with_name("bench_library_beside")
    if made.exists() and made.stat().st_mtime > source.stat().st_mtime:
        return made
    nvcc = compiler()
    if nvcc is None:
        print("CUB, cuBLAS, cuFFT: skipped: no nvcc")
        return None
    done = subprocess.run(
        [nvcc, "-O3", "-std=c++17", "-arch=native", "-o", str(made),
         str(source), "-lcublas", "-lcufft"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    if done.returncode != 0:
        print(f"CUB, cuBLAS, cuFFT: skipped: {done.stdout[-2000:]}")
        return None
    return made


def against(rows, others, name, what):
    """What the row is put against, or None."""
    if what == "library":
        return others[name]["value"] if name in others else None
    return next((row["value"] for key, row in {**rows, **others}.items()
                 if key.startswith(f"{what} 2^")), None)


def judge(rows, others):
    """Prints each bar; whether all that could be asked hold."""
    holds = True
    for begin, what, least in BARS:
        for name, row in rows.items():
            than = against(rows, others, name, what)
            if not name.startswith(begin) or than is None:
                continue
            ratio = row["value"] / than
            good = ratio >= least
            holds = holds and good
            print(f"bar: {name:44} {ratio:7.3f} of the {what} "
                  f"({than:.4g} {row['unit']}), at least {least}"
                  f"{'' if good else ': DOES NOT HOLD'}")
    judged = {name for begin, _, _ in BARS for name in rows
              if name.startswith(begin)}
    for name in sorted(set(rows) & set(others) - judged):
        than = others[name]["value"]
        print(f"beside: {name:41} {rows[name]['value'] / than:7.3f} of the "
              f"library ({than:.4g} {rows[name]['unit']})")
    return holds


def main():
    program, *rest = bench_beside.arguments(__doc__)
    rest += sys.argv[3:4]
    if program == "--build":
        sys.exit(0 if build_beside(rest[0]) else 1)
    code, rows = bench_beside.run_program([program, *rest])
    if code != 0 or (rest and not rest[0].startswith("cuda")):
        sys.exit(code)
    made = build_beside(program)
    others = {}
    if made is not None:
        other, others = bench_beside.run_program([str(made), *rest[1:]])
        if other != 0:
            print("CUB, cuBLAS, cuFFT: failed")
            sys.exit(1)
    sys.exit(0 if judge(rows, others) else 1)


if __name__ == "__main__":
    main()
