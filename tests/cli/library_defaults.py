#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: each entry of the library by its defaults alone.

library_defaults.py KILN

Runs, for each entry of `kiln lib list`, the command that `kiln lib NAME`
prints: nothing but outputs. What comes out is compared with what is known of
the sample: a published value, a hash of the standard library, or the same
computed here in another way. Then without outputs, which is refused with a
command that works.
"""
import json
import math
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

CODES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "f8": "d"}
CSR = ([0, 2, 4, 6, 9, 10], [1, 2, 0, 3, 0, 3, 1, 2, 4, 3])
FAR = 0xffffffff


def load(path):
    """(shape, numbers) of an .npy, or ([], bytes) of anything else."""
    data = path.read_bytes()
    if path.suffix != ".npy":
        return [], list(data)
    head = eval(data[10:10 + data[8] + 256 * data[9]])  # our own file
    body = data[10 + data[8] + 256 * data[9]:]
    code = CODES[head["descr"][1:]]
    return list(head["shape"]), [v for (v,) in struct.iter_unpack("<" + code,
                                                                  body)]


def pixels(path):
    """(width, height, rows) of a PNG without interlace, of 8 bits."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    w, h, depth, color = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    channels = {0: 1, 2: 3}[color]
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw, rows, last = zlib.decompress(packed), [], bytes(w * channels)
    for y in range(h):
        line = bytearray(raw[y * (w * channels + 1):(y + 1) *
                             (w * channels + 1)])
        how, line = line[0], line[1:]
        for i in range(len(line)):
            a = line[i - channels] if i >= channels else 0
            b = last[i]
            c = last[i - channels] if i >= channels else 0
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b),
                       (abs(p - c), 2, c))[2]
            add = [0, a, b, (a + b) // 2, near][how]
            line[i] = (line[i] + add) & 255
        rows.append(bytes(line))
        last = bytes(line)
    return w, h, channels, rows


def randoms(count, low, high, whole):
    """As the command makes them."""
    state, found = 0x9e3779b97f4a7c15, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        bits = state >> 33
        found.append(low + bits % (high - low + 1) if whole else
                     struct.unpack("f", struct.pack(
                         "f", low + (high - low) * bits / 2**31))[0])
    return found


def near(have, want, error):
    return len(have) == len(want) and all(
        abs(a - b) <= error for a, b in zip(have, want))


def attention(f):
    shape, y = f["y"]
    q, k = randoms(512, -1, 1, False), randoms(768, -1, 1, False)
    want = []
    for r in range(8):
        scores = [sum(q[r * 64 + i] * k[c * 64 + i] for i in range(64)) / 8
                  for c in range(12)]
        parts = [math.exp(s - max(scores)) for s in scores]
        want += [sum(p * k[c * 64 + i] for c, p in enumerate(parts)) /
                 sum(parts) for i in range(64)]
    return shape == [8, 64] and near(y, want, 1e-5)


def blur(f):
    w, h, channels, rows = pixels(f["blurred"])
    middle, edge = rows[8][8 * 3], rows[8][15 * 3]
    return (w, h, channels) == (192, 128, 3) and middle == 255 and \
        edge == round(255 * 11 / 16) and rows[8][24 * 3] == 0


def convolution(f):
    shape, y = f["y"]
    x = [255 if (r // 8 + c // 8) % 2 == 0 else 0
         for r in range(64) for c in range(64)]

    def sobel(r, c):
        def at(i, j):
            return x[i * 64 + j] if 0 <= i < 64 and 0 <= j < 64 else 0
        return sum(v * at(r + i - 1, c + j - 1) for i, row in enumerate(
            ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1))) for j, v in enumerate(row))
    return shape == [2, 64, 64] and \
        y[:4096] == [sobel(r, c) for r in range(64) for c in range(64)]


def fft(f):
    shape, y = f["y"]
    x = randoms(256, -1, 1, False)
    want = []
    for r in range(4):
        for k in range(32):
            total = sum(complex(x[r * 64 + 2 * j], x[r * 64 + 2 * j + 1]) *
                        complex(math.cos(2 * math.pi * j * k / 32),
                                -math.sin(2 * math.pi * j * k / 32))
                        for j in range(32))
            want += [total.real, total.imag]
    return shape == [4, 32, 2] and near(y, want, 1e-4)


def life(f):
    w, h, channels, rows = pixels(f["next"])
    cells = randoms(65536, 0, 1, True)

    def lives(r, c):
        around = sum(cells[(r + i) % 256 * 256 + (c + j) % 256]
                     for i in (-1, 0, 1) for j in (-1, 0, 1))
        return around == 3 or (around == 4 and cells[r * 256 + c])
    return (w, h, channels) == (256, 256, 1) and all(
        rows[r][c] == 255 * bool(lives(r, c))
        for r in range(256) for c in range(256))


def mandelbrot(f):
    w, h, channels, rows = pixels(f["picture"])
    # Of the middle row, -0.5 is in the set and the left edge is not; the image
    # is the same below its middle row as above.
    inside = rows[h // 2][int((-0.5 + 2.2) / 3 * w) * 3:][:3]
    return (w, h, channels) == (451, 300, 3) and inside != rows[150][:3] and \
        sum(a != b for a, b in zip(rows[100], rows[200])) < 40


def normalize(f):
    shape, y = f["y"]
    parts = [y[r * 128:(r + 1) * 128] for r in range(4)]
    return shape == [4, 128] and all(
        abs(sum(p)) < 1e-3 and abs(sum(v * v for v in p) / 128 - 1) < 1e-3
        for p in parts)


def softmax(f):
    shape, y = f["y"]
    x = randoms(512, -1, 1, False)
    want = []
    for r in range(4):
        parts = [math.exp(v) for v in x[r * 128:(r + 1) * 128]]
        want += [p / sum(parts) for p in parts]
    return shape == [4, 128] and near(y, want, 1e-6)


def nbody(f):
    shape, y = f["pulls"]
    mass = randoms(1024, 0, 1, False)[3::4]
    return shape == [256, 3] and any(y) and all(
        abs(sum(m * v for m, v in zip(mass, y[axis::3]))) < 0.05 *
        sum(abs(m * v) for m, v in zip(mass, y[axis::3]))
        for axis in range(3))


def aho_corasick(f):
    text = b"she sells sea shells by the sea shore; he sells none"
    words = [b"she", b"he", b"shells"]
    ends = sorted((at + len(word), at, number)
                  for number, word in enumerate(words)
                  for at in range(len(text)) if text.startswith(word, at))
    count = f["count"][1][0]
    return count == len(ends) and \
        f["places"][1][:count] == [at for _, at, _ in ends] and \
        f["which"][1][:count] == [number for _, _, number in ends]


def compact(f):
    keep = randoms(1000, 0, 1, True)
    want = [i for i in range(1000) if keep[i]]
    return f["count"][1] == [len(want)] and \
        f["kept"][1][:len(want)] == want


def crosses(text):
    """A running sum that begins again at heads."""
    found, total = [], 0
    for head in text:
        total = 1 if head else total + 1
        found.append(total)
    return found


KEYS = sorted(randoms(1000, 0, 999, True))
RUNS = {"values": [1, 2, 3, 1], "starts": [0, 2, 5, 6],
        "lengths": [2, 3, 1, 2]}
BLAKE3 = bytes.fromhex(
    "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85")

CHECKS = {
    "aho_corasick": aho_corasick,
    "attention": attention,
    "bfs": lambda f: f["levels"][1] == [0, 1, 1, 2, 3, FAR],
    "blake3": lambda f: struct.pack("<8I", *f["hash"][1]) == BLAKE3,
    "blur": blur,
    "compact": compact,
    "components": lambda f: f["labels"][1] == [0] * 5 + [5] * 2 and
    f["count"][1] == [2],
    "convolution": convolution,
    "crc32": lambda f: f["result"][1] == [zlib.crc32(b"123456789")],
    "fft": fft,
    "fold": lambda f: f["result"][1] == [500500],
    "gather": lambda f: f["y"][1] == list(range(90, -10, -10)),
    "histogram": lambda f: f["counts"][1] == [16] * 256,
    "json_index": lambda f: f["count"][1] == [9, 0] and
    f["places"][1][:9] == [0, 1, 7, 9, 10, 11, 13, 17, 18],
    "life": life,
    "lines": lambda f: f["count"][1] == [4] and
    f["starts"][1][:4] == [0, 4, 8, 9],
    "lz4": lambda f: f["errors"][1] == [0] and f["sizes"][1] == [13] and
    bytes(f["result"][1])[:13] == b"aaaaaaaaaaabc",
    "mandelbrot": mandelbrot,
    "map": lambda f: f["y"][1] == [3 * v * v + 2 * v + 1 for v in range(10)],
    "matmul": lambda f: f["c"] == ([4, 2], [22, 28, 49, 64, 76, 100, 103,
                                            136]),
    "merge_sort": lambda f: f["sorted"][1] == KEYS,
    "nbody": nbody,
    "normalize": normalize,
    # The first block of a counter and a key of zeroes, as Random123 has it.
    "philox": lambda f: f["y"][1][:4] == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                          0x9b00dbd8],
    "reduce": lambda f: f["sums"][1] == [4096, 4096, 1808],
    "runs": lambda f: f["runs"][1] == [4] and
    all(f[n][1][:4] == RUNS[n] for n in ("values", "lengths")),
    "saxpy": lambda f: f["y"][1] == [2 * v + 1 for v in range(8)],
    "scan": lambda f: f["y"][1] == [v * (v + 1) // 2
                                    for v in range(1, 1001)],
    "scan_segments": lambda f: f["y"][1] == crosses([1, 0, 0, 1, 0, 1, 0, 0,
                                                     0]),
    "scatter": lambda f: f["y"][1] == list(range(7, -1, -1)),
    "segments": lambda f: f["results"][1] == [6, 0, 72],
    "softmax": softmax,
    "sort": lambda f: f["sorted"][1] == KEYS,
    "spmv": lambda f: f["y"][1] == [0, 0, 0, 5],
    "transpose": lambda f: f["y"] == ([4, 3], [0, 4, 8, 1, 5, 9, 2, 6, 10, 3,
                                               7, 11]),
    "unique": lambda f: f["runs"][1] == [4] and
    all(f[n][1][:4] == RUNS[n] for n in ("values", "starts")),
    "utf8": lambda f: f["left"][1] == [0],
}


def advice(kiln, entry, folder):
    """What is wrong with the command that it is told to write instead of
    one without outputs, or None."""
    asked = subprocess.run([kiln, "run", "lib:" + entry["name"], "--device",
                            "soft"], cwd=folder, stderr=subprocess.PIPE,
                           text=True, check=False)
    fix = [line for line in asked.stderr.splitlines()
           if line.startswith("Fix: kiln run ")]
    if all(row["role"] != "out" for row in entry["defaults"]):
        return None
    if asked.returncode != 2 or len(fix) != 1:
        return f"without outputs: exit {asked.returncode}\n{asked.stderr}"
    done = subprocess.run([kiln, *shlex.split(fix[0])[2:]], cwd=folder,
                          stderr=subprocess.PIPE, text=True, check=False)
    return None if done.returncode == 0 else f"{fix[0]}\n{done.stderr}"


def run_entry(kiln, entry, folder):
    """What is wrong with it, or None."""
    told = json.loads(subprocess.check_output([kiln, "lib", entry["name"],
                                               "--json"]))
    if told["defaults"] != entry["defaults"]:
        return "kiln lib list and kiln lib NAME differ"
    words = told["command"].split()
    done = subprocess.run([kiln, *words[1:], "--device", "soft"], cwd=folder,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return f"{told['command']}: exit {done.returncode}\n{done.stderr}"
    outputs = [row for row in told["defaults"] if "out" in row["role"]]
    files = {}
    for row, word in zip(outputs, words[words.index("--out") + 1::2]):
        path = folder / word.split("=")[-1]
        files[row["parameter"]] = path if path.suffix == ".png" else load(path)
    check = CHECKS.get(entry["name"])
    if check is None:
        return "nobody here knows what it makes"
    return None if check(files) else f"{told['command']}: wrong: {files}"


def main():
    kiln = str(pathlib.Path(sys.argv[1]).resolve())
    entries = json.loads(subprocess.check_output([kiln, "lib", "list",
                                                  "--json"]))["entries"]
    faults = 0
    for entry in entries:
        if "part_of" in entry:
            continue
        with tempfile.TemporaryDirectory() as text:
            fault = run_entry(kiln, entry, pathlib.Path(text)) or \
                advice(kiln, entry, pathlib.Path(text))
        print(f"{'not ok' if fault else 'ok'} {entry['name']}"
              f"{': ' + fault[:2000] if fault else ''}")
        faults += fault is not None
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
