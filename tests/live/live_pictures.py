#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: the README's main job on soft and on cuda:0, byte for byte.

    live_pictures.py --kiln KILN

Also with the sources compiled by NVRTC for the GPU, where it is found: the
pixels must be the same. Exit code 77 without a GPU.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOB = ROOT / "examples" / "pictures" / "run.sh"
PICTURES = ("gray.png", "blurred.png", "edges.png", "mandelbrot.png")
NOT_FOUND = 3
SKIP = 77


def job(kiln, folder, device, source):
    done = subprocess.run(
        ["sh", str(JOB), kiln, str(folder), "--device", device],
        capture_output=True, text=True, check=False,
        env={**os.environ, "SOURCE": "1" if source else "0"})
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", required=True)
    kiln = parser.parse_args().kiln
    faults = 0
    with tempfile.TemporaryDirectory() as text:
        base = pathlib.Path(text)
        kinds = (("soft", "soft", False), ("gpu", "cuda:0", False),
                 ("gpu-nvrtc", "cuda:0", True))
        for name, device, source in kinds:
            code, output = job(kiln, base / name, device, source)
            if name == "gpu" and code == NOT_FOUND:
                print(f"skipped: {output.strip()}")
                sys.exit(SKIP)
            if code != 0:
                print(f"not ok {name}: exit {code}\n{output}")
                faults += 1
        for name, _, _ in kinds[1:]:
            for picture in PICTURES:
                pair = [base / which / picture for which in ("soft", name)]
                same = all(p.exists() for p in pair) and \
                    pair[0].read_bytes() == pair[1].read_bytes()
                print(f"{'ok' if same else 'not ok'} {picture}: soft and {name}")
                faults += not same
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
