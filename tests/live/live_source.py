#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: CUDA C++ by `kiln run`, on a GPU and on the software device.

    live_source.py KILN [DEVICE]

Each case is a source with the options that it needs. The software device and
the GPU (cuda:0) must end with the same exit code, print the same and leave the
same bytes. Exit code 77 without a GPU.
"""
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77

# Without what makes the driver lose arguments (docs/reference/
# soft-instructions.md, vprintf).
PRINTF = r"""
extern "C" __global__ void show(int *done)
{
	long long big = 0x123456789abcdefll;
	printf("%hd %hu|%d %u|%ld %lu|%lld %llu\n", 70000, 70000, -1, -1, -1l,
		-1ll, -1ll, -1ll);
	printf("%hx %x %lx %llx\n", 0x12345, 0x12345678, big, big);
	printf("[%8d][%-8d][%08d][%+d][% d][%#x][%#o]\n", 42, 42, 42, 42, 42,
		42, 42);
	printf("[%8.3f][%-10.2e][%g][%G][%a]\n", 3.14159, 31415.9, 1e-7, 1e10,
		1.5);
	printf("[%*d][%-*d]\n", 6, 7, 6, 7);
	printf("[%s][%8s][%-8s][%.2s]\n", "text", "text", "text", "text");
	printf("[%c%c][%3c]\n", 'a', 'b', 'c');
	printf("[%.2s][%8s]\n", (char *)0, (char *)0);
	printf("%% 100%%\n");
	printf("%f %f %f\n", 1.0 / 0.0, -1.0 / 0.0, 0.0);
	printf("%5.1f|%05d|%.3d|%x\n", -0.05, -12, 7, 0);
	printf("%q 3\n", 5);
	printf("%y a% b\n");
	printf("%D|%d\n", 7);
	printf("%l d|%d\n", 7);
	printf("%llld|%d\n", 7);
	printf("%.3.4d|%.-3d|%d %>\n", 7);
	printf("[%p]\n", (void *)0x1234);
	*done = printf("three %d %d %d\n", 1, 2, 3);
	done[1] = printf("plain\n");
}
"""

STORES = r"""
extern "C" __global__ void conflict(unsigned *won, unsigned masks)
{
	unsigned lane = threadIdx.x, word = blockIdx.x;
	unsigned mask = 0x9e3779b9u * (word + masks) | 0x80000000u;
	if (mask >> lane & 1)
		won[word] = lane;
}
extern "C" __global__ void conflict4(uint4 *won, unsigned masks)
{
	unsigned lane = threadIdx.x, word = blockIdx.x;
	unsigned mask = 0x9e3779b9u * (word + masks) | 0x80000000u;
	if (mask >> lane & 1)
		won[word] = make_uint4(lane, lane + 1, lane + 2, lane + 3);
}
"""

GRID = r"""
#include <cooperative_groups.h>
extern "C" __global__ void around(unsigned *ring, unsigned rounds)
{
	auto grid = cooperative_groups::this_grid();
	unsigned me = grid.thread_rank(), all = grid.size();
	for (unsigned i = 0; i < rounds; i++) {
		unsigned next = ring[(me + 1) % all];
		grid.sync();
		ring[me] = next * 2654435761u + me;
		grid.sync();
	}
}
"""

STRUCTS = r"""
struct inner { float scale; short skip; };
struct work { struct inner in; double add; char flag; };
extern "C" __global__ void apply(double *y, struct work w, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = w.flag ? i * w.in.scale + w.add + w.in.skip : -1;
}
"""

TEMPLATES = r"""
namespace shapes {
template <typename T, int N> __global__ void powers(T *y)
{
	T x = (T)threadIdx.x, p = 1;
	for (int i = 0; i < N; i++)
		p *= x;
	y[threadIdx.x] = p + (T)BIAS;
}
}
"""

HEAP = r"""
extern "C" __global__ void heap(unsigned *sum)
{
	unsigned *mine = (unsigned *)malloc(64 * sizeof *mine), total = 0;
	for (unsigned i = 0; i < 64; i++)
		mine[i] = i * threadIdx.x;
	for (unsigned i = 0; i < 64; i++)
		total += mine[i];
	sum[threadIdx.x] = total;
	free(mine);
}
"""

BESSEL = r"""
#define CASE(name, call) extern "C" __global__ void \
	name(double *y, double first, double step) \
	{ int i = blockIdx.x * blockDim.x + threadIdx.x; \
	  double x = first + i * step; y[i] = call(x); }
CASE(first_zero, j0) CASE(first_one, j1)
CASE(second_zero, y0) CASE(second_one, y1)
"""


def case(name, source, *options, outputs=()):
    return name, source, options, outputs


def bessel(entry, first, step):
    return case("%s from %s" % (entry, first), BESSEL, "--entry", entry,
                "--option=--fmad=false", "--grid", "64", "--block", "128",
                "--arg", "1=%sf64" % first, "--arg", "2=%sf64" % step,
                "--out", "0=@/y:f64[8192]", outputs=("y",))


CASES = [
    case("printf", PRINTF, "--grid", "1", "--block", "1",
         "--out", "0=@/done:i32[2]", outputs=("done",)),
    *(case("one address, %s" % entry, STORES, "--entry", entry, "--grid",
           "256", "--block", "32", "--arg", "1=%du32" % seed,
           "--out", "0=@/won:u32[1024]", outputs=("won",))
      for entry in ("conflict", "conflict4") for seed in (1, 77)),
    case("grid.sync()", GRID, "--cooperative", "--grid", "16", "--block",
         "64", "--arg", "1=9u32", "--out", "0=@/ring:u32[1024]",
         outputs=("ring",)),
    case("a struct by its members", STRUCTS, "--arg",
         "1={1.5f32,-7i16,0.25f64,1i8,0u8,0u16,0u32}", "--arg", "2=100i32", "--out",
         "0=@/y:f64[100]", outputs=("y",)),
    case("a template's instance", TEMPLATES, "--entry",
         "shapes::powers<float, 5>", "--define", "BIAS=3", "--std", "c++17",
         "--grid", "1", "--block", "96", "--out", "0=@/y:f32[96]",
         outputs=("y",)),
    case("malloc", HEAP, "--grid", "1", "--block", "64", "--out",
         "0=@/sum:u32[64]", outputs=("sum",)),
    *(bessel(entry, *numbers)
      for entry in ("first_zero", "first_one", "second_zero", "second_one")
      for numbers in (("0.0", "0.00613"), ("1000.5", "17.77"),
                      ("1.0e9", "1234567.89"))),
]


def answer(kiln, device, folder, one):
    """Exit code, what was printed, and the files that one case leaves."""
    _, source, options, outputs = one
    place = folder / device.replace(":", "-")
    place.mkdir(exist_ok=True)
    text = place / "source.cu"
    text.write_text(source)
    line = [kiln, "run", str(text), "--device", device, "--no-cache",
            *(word.replace("@", str(place), 1) for word in options)]
    done = subprocess.run(line, capture_output=True, check=False)
    printed = [words for words in done.stderr.splitlines()
               if not words.startswith(b"kiln: ") and
               b"source.cu(" not in words]
    files = {name: (place / name).read_bytes()
             if (place / name).exists() else None for name in outputs}
    return done.returncode, printed, files, done.stderr


def first_difference(here, there):
    if len(here) != len(there):
        return "%d and %d bytes" % (len(here), len(there))
    at = [i for i, pair in enumerate(zip(here, there)) if pair[0] != pair[1]]
    return "%d bytes differ, the first at %d: %s and %s" % (
        len(at), at[0], here[at[0] & ~7:][:16].hex(),
        there[at[0] & ~7:][:16].hex())


def differences(soft, gpu):
    if soft[0] != gpu[0] or soft[0] != 0:
        yield "exit codes %d and %d\n%s%s" % (
            soft[0], gpu[0], soft[3].decode(errors="replace"),
            gpu[3].decode(errors="replace"))
    for i in range(max(len(soft[1]), len(gpu[1]))):
        here = soft[1][i] if i < len(soft[1]) else None
        there = gpu[1][i] if i < len(gpu[1]) else None
        if here != there:
            yield "printed %r and %r" % (here, there)
    for name, data in soft[2].items():
        if data != gpu[2][name] and data and gpu[2][name]:
            yield "%s: %s" % (name, first_difference(data, gpu[2][name]))


def main():
    kiln = sys.argv[1]
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    bad = 0
    with tempfile.TemporaryDirectory() as text:
        probe = subprocess.run(
            [kiln, "run", "lib:mandelbrot", "--device", device, "--out",
             text + "/m.png"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            print("skipped: " + probe.stderr.strip())
            return SKIP
        for one in CASES:
            found = [*differences(
                answer(kiln, "soft", pathlib.Path(text), one),
                answer(kiln, device, pathlib.Path(text), one))]
            bad += bool(found)
            print("%s %s" % ("differs:" if found else "same:", one[0]))
            for line in found[:20]:
                print("    " + line)
    print("%d cases, %d differ" % (len(CASES), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
