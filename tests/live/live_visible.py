#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests: `cuda:N` is the N-th entry of the user's own CUDA_VISIBLE_DEVICES.

    live_visible.py --kiln KILN

Needs two GPUs; exit code 77 otherwise.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "examples/pictures"
NOT_FOUND = 3
SKIP = 77


def uuids():
    if shutil.which("nvidia-smi") is None:
        return []
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True,
                          check=False)
    return [line.split("UUID: ")[1].rstrip(")")
            for line in done.stdout.splitlines() if "UUID: " in line]


def run(kiln, device, visible, folder):
    environment = {k: v for k, v in os.environ.items()
                   if k != "CUDA_VISIBLE_DEVICES"}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run(
        [kiln, "run", str(PICTURES / "mandelbrot.ptx"), "--device", device,
         "--out", f"0={folder}/m.raw:u8[16,16,3]", "--arg", "1=16i32",
         "--arg", "2=16i32", "--arg", "3=9i32", "--grid", "1,1",
         "--block", "16,16", "--json"],
        capture_output=True, text=True, env=environment, check=False)
    said = json.loads(done.stdout)
    return done.returncode, said.get("device"), said.get("error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", required=True)
    kiln = parser.parse_args().kiln
    names = uuids()
    if len(names) < 2:
        print(f"skipped: {len(names)} GPUs here, two are needed")
        sys.exit(SKIP)
    last = len(names) - 1
    cases = [
        ("cuda:0", None, 0), ("cuda:1", None, 0),
        (f"cuda:{last}", None, 0), (f"cuda:{last + 1}", None, NOT_FOUND),
        ("cuda:0", "1", 0), ("cuda:1", "1", NOT_FOUND),
        ("cuda:1", "1,0", 0), ("cuda:1", f"{names[1]},{names[0]}", 0),
        ("cuda:0", names[1], 0), ("cuda:1", "0,-1,1", NOT_FOUND),
        ("cuda:0", "", NOT_FOUND), ("auto", "1", 0),
    ]
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for device, visible, wanted in cases:
            code, said, error = run(kiln, device, visible, folder)
            label = "cuda:0" if device == "auto" else device
            good = code == wanted and (code != 0 or said == label)
            print(f"{'ok' if good else 'not ok'} {device} of {visible}: exit "
                  f"{code}, {said or error}")
            faults += not good
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
