#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench: the rows of bench_library and bench_graphs beside other libraries.

    bench_library.py PROGRAM [DEVICE [LOG]]

PROGRAM is bench_library or bench_graphs; its results come first. Then what is
set beside it, on the same GPU: where nvcc is on the path, or in CUDA_PATH or
CUDA_HOME, programs of NVIDIA's libraries, compiled and kept beside PROGRAM;
where this Python has PyTorch, a script of it. What is not there is said, and
has no rows. Then the bars: a row is judged where both are there, or where it
is put against the copy or the reading of the same run; and what stands beside
each other row, and by what. The exit code is PROGRAM's, or 1 where a bar does
not hold or another library's program failed, or 77 where there is no device.
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

# What is set beside which program: its source, the libraries that it is linked
# with (None: a script), and what it is called.
BESIDE = {
    "bench_library": (
        ("bench_library_beside.cu", ("cublas", "cufft"),
         "CUB, Thrust, cuBLAS, cuFFT"),
        ("bench_library_random.cu", ("curand",), "cuRAND"),
        ("bench_library_torch.py", None, "PyTorch"),
    ),
    "bench_graphs": (
        ("bench_graphs_beside.cu", ("cusparse",), "cuSPARSE"),
    ),
}
HERE = Path(__file__).resolve().parent
INCLUDES = HERE.parents[1] / "tests/support"


def compiler():
    """nvcc, or None."""
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        path = Path(os.environ.get(variable, "")) / "bin/nvcc"
        if os.environ.get(variable) and path.exists():
            return str(path)
    return shutil.which("nvcc")


def reason(text):
    """The line of a compiler's output that says why, or the last one."""
    lines = text.strip().splitlines() or ["no reason given"]
    return next((line for line in lines if "error" in line), lines[-1])[:300]


def build_beside(program, source, libraries, name):
    """The command of what is set beside a program, or None and a line."""
    source = HERE / source
    if libraries is None:
        return [sys.executable, str(source)]
    made = Path(program).resolve().with_name(source.stem)
    newest = max(path.stat().st_mtime
                 for path in (source, HERE / "bench_beside_cuda.cuh",
                              INCLUDES / "csr_graph.h"))
    if made.exists() and made.stat().st_mtime > newest:
        return [str(made)]
    nvcc = compiler()
    if nvcc is None:
        print(f"{name}: skipped: no nvcc")
        return None
    done = subprocess.run(
        [nvcc, "-O3", "-std=c++17", "-arch=native", "-I", str(INCLUDES), "-o",
         str(made), str(source), *(f"-l{library}" for library in libraries)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    if done.returncode != 0:
        print(f"{name}: skipped: {reason(done.stdout)}")
        return None
    return [str(made)]


def run_beside(program, size):
    """The rows of all that is set beside a program, and whether none of it
    failed."""
    found, good = {}, True
    for source, libraries, name in BESIDE[Path(program).name]:
        command = build_beside(program, source, libraries, name)
        if command is None:
            continue
        code, rows = bench_beside.run_program([*command, *size])
        if code == bench_beside.SKIPPED:
            print(f"{name}: skipped, see above")
        elif code != 0:
            print(f"{name}: failed ({code})")
            good = False
        found.update(rows)
    return found, good


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
    return holds


def show(rows, others):
    """Prints what stands beside each row, and which rows have nothing."""
    for name in sorted(set(rows) & set(others)):
        than = others[name]["value"]
        print(f"beside: {name:41} {rows[name]['value'] / than:7.3f} of the "
              f"library ({than:.4g} {rows[name]['unit']}: "
              f"{others[name]['how']})")
    alone = [name for name in rows if name not in others and " by " not in name]
    print(f"no library beside: {'; '.join(alone)}")


def main():
    program, *rest = bench_beside.arguments(__doc__)
    rest += sys.argv[3:4]
    if program == "--build":
        made = [build_beside(rest[0], *part)
                for part in BESIDE[Path(rest[0]).name]]
        sys.exit(0 if None not in made else 1)
    code, rows = bench_beside.run_program([program, *rest])
    if code != 0 or (rest and not rest[0].startswith("cuda")):
        sys.exit(code)
    others, good = run_beside(program, rest[1:])
    show(rows, others)
    sys.exit(0 if judge(rows, others) and good else 1)


if __name__ == "__main__":
    main()
