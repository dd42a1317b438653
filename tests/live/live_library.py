#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: the programs of lib/ on soft and on cuda:0, byte for byte.

    live_library.py --kiln KILN [--device soft]

Each by `kiln run`, on inputs from a seed. Exit code 77 without a GPU. With
--device soft the software device is compared with itself in another order of
its threads, which needs no GPU.
"""
import argparse
import array
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOT_FOUND = 3
SKIP = 77


def inputs(folder):
    """Files of random floats, bytes, and text."""
    maker = random.Random(41)

    def floats(name, count):
        with open(folder / name, "wb") as file:
            array.array("f", [maker.uniform(-9, 9)
                              for _ in range(count)]).tofile(file)

    floats("x.f32", 100001)
    floats("y.f32", 100001)
    floats("a.f32", 300 * 127)
    floats("b.f32", 127 * 259)
    floats("t.f32", 331 * 207)
    (folder / "bytes.bin").write_bytes(maker.randbytes(200003))
    (folder / "cells.bin").write_bytes(
        bytes(maker.random() < 0.3 for _ in range(1100 * 90)))
    text = (ROOT / "README.md").read_text(encoding="utf-8") * 20
    (folder / "valid.txt").write_text(text + "\u20ac\U0001f600", "utf-8")
    (folder / "broken.txt").write_bytes(
        text.encode() + b"\xe2\x82\xac\xed\xa0\x80" + text.encode())


def runs(folder, cat):
    """(program, the options but outputs, outputs) of every run."""
    def data(name):
        return str(folder / name)

    def numbers(**values):
        found = []
        for name, value in values.items():
            found += ["--arg", f"{name}={value}"]
        return found

    yield "map", ["--in", "x=" + data("x.f32")], ["y"]
    yield ("saxpy", ["--in", "x=" + data("x.f32"), "--in",
                     "y=" + data("y.f32")] + numbers(a="2.5f32"), ["y"])
    yield "reduce", ["--in", "x=" + data("x.f32")], ["sums"]
    yield ("transpose", ["--in", "x=" + data("t.f32")] +
           numbers(w="331u32", h="207u32"), ["y"])
    yield "histogram", ["--in", "x=" + data("bytes.bin")], ["counts"]
    yield ("histogram", ["--in", "x=" + data("x.f32"), "--define", "T=u16",
                         "--define", "BINS=99"], ["counts"])
    yield ("histogram", ["--in", "x=" + data("x.f32"), "--define", "T=u16",
                         "--define", "BINS=4096"], ["counts"])
    yield ("mandelbrot", numbers(w="451u32", h="300u32", limit="500u32"),
           ["picture"])
    yield ("matmul", ["--in", "a=" + data("a.f32"), "--in",
                      "b=" + data("b.f32")] +
           numbers(m="300u32", n="259u32", k="127u32"), ["c"])
    for name, kind, m, k in (("matmul", "f16", 300, 254),
                             ("matmul_f64", "f64", 150, 127)):
        yield (name, ["--in", "a=" + data("a.f32"), "--in",
                      "b=" + data("a.f32"), "--define", f"T={kind}"] +
               numbers(m=f"{m}u32", n=f"{m}u32", k=f"{k}u32"), ["c"])
    # Strictly, and so the bits of matmul.
    for kind in ("f16", "bf16"):
        given = ["--define", f"T={kind}"]
        for name in ("a", "b", "a_words", "b_words"):
            given += ["--in", f"{name}=" + data("a.f32")]
        yield ("matmul_half", given +
               numbers(m="300u32", n="300u32", k="254u32"), ["c"])
    for option in ("T=f32", "T=f16"):
        width = 50 if option == "T=f32" else 100
        given = ["--define", option, "--define", f"WIDTH={width}",
                 "--define", "KEYS=32"]
        for name in "qkv":
            given += ["--in", f"{name}=" + data("a.f32")]
        yield ("attention", given +
               numbers(queries="127u32", keys="127u32", causal="1u32"), ["y"])
    for kind, h in (("f32", 254), ("f16", 508)):
        # 3 channels of 50 columns; the filters are what a.f32 begins with.
        part = folder / f"filters.{kind}"
        size = 7 * 3 * 5 * 3 * (4 if kind == "f32" else 2)
        part.write_bytes((folder / "a.f32").read_bytes()[:size])
        yield ("convolution",
               ["--in", "x=" + data("a.f32"), "--in", f"filters={part}",
                "--define", f"T={kind}"] +
               numbers(w="50u32", h=f"{h}u32", channels="3u32", outs="7u32",
                       fw="5u32", fh="3u32"), ["y"])
    yield ("blur", ["--in", f"picture={cat}"] +
           numbers(w="451u32", h="300u32", channels="3u32"), ["blurred"])
    yield "utf8", ["--in", "text=" + data("valid.txt")], ["left"]
    yield "utf8", ["--in", "text=" + data("broken.txt")], ["left"]
    yield "fft_roots", ["--define", "TOTAL=65536"], ["roots"]
    # Any numbers will do for roots, as many as there have to be.
    for options, words in ((["SIZE=32"], 64), (["SIZE=4096"], 8192),
                           (["SIZE=2048", "T=f64", "WORDS=2"], 8192),
                           (["SIZE=128", "TOTAL=8192", "STEP=1"], 3328),
                           (["SIZE=64", "TOTAL=8192", "STEP=2"], 128)):
        part = folder / f"roots.{words}"
        part.write_bytes((folder / "a.f32").read_bytes()[:4 * words])
        given = ["--in", "x=" + data("a.f32"), "--in", f"roots={part}"]
        for option in options:
            given += ["--define", option]
        yield "fft", given + numbers(inverse=f"{len(options) % 2}u32"), ["y"]
    for generations in (1, 16):
        yield ("life", ["--in", "cells=" + data("cells.bin")] +
               numbers(w="1100u32", h="90u32",
                       generations=f"{generations}u32"), ["next"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    cat = ROOT / "examples" / "pictures" / "cat.png"
    devices = {"one": ["--device", "soft"],
               "other": ["--device", options.device, "--seed", "7"]}
    faults = count = 0
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        inputs(folder)
        for number, (name, given, outputs) in enumerate(runs(folder, cat)):
            made = {}
            for side, device in devices.items():
                files = [folder / f"{number}.{out}.{side}" for out in outputs]
                command = [options.kiln, "run",
                           str(ROOT / "lib" / (name + ".kiln"))]
                for out, file in zip(outputs, files):
                    given_out = ["--out", f"{out}={file}"]
                    command += given_out
                done = subprocess.run(command + given + device,
                                      capture_output=True, text=True,
                                      check=False)
                if side == "other" and done.returncode == NOT_FOUND:
                    print(f"skipped: {done.stderr.strip()}")
                    sys.exit(SKIP)
                if done.returncode != 0:
                    print(f"not ok {name} {device}: exit {done.returncode}\n"
                          f"{done.stderr}")
                    faults += 1
                made[side] = [f.read_bytes() if f.exists() else None
                              for f in files]
            same = made["one"] == made["other"] and None not in made["one"] \
                and all(any(content) or name == "utf8"
                        for content in made["one"])
            print(f"{'ok' if same else 'not ok'} {name}: "
                  f"{sum(len(c or b'') for c in made['one'])} bytes")
            faults += not same
            count += 1
    print(f"{count} runs, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
