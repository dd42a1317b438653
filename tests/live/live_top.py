#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live: `kiln top` on a machine with GPUs, beside nvidia-smi where that is.

    live_top.py KILN

Every GPU tells its memory, temperature, power and clocks, in bounds that make
sense; names, UUIDs and memory are nvidia-smi's; a process of ours that holds
memory is on the list; and in a terminal it behaves as on any machine.
"""
import json
import pathlib
import shutil
import subprocess
import sys

TERMINAL = pathlib.Path(__file__).resolve().parent.parent / "cli/top_terminal.py"
BOUNDS = {"memory_total": (1 << 30, 1 << 42), "memory_used": (0, 1 << 42),
          "temperature": (0, 120), "power": (1000, 2_000_000),
          "utilization": (0, 100), "clock_sm": (100, 5000),
          "pcie_generation": (1, 8), "pcie_lanes": (1, 32)}


def page(kiln):
    done = subprocess.run([kiln, "top", "--once", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_device(device):
    values = device["values"]
    known = sum(value is not None for value in values.values())
    print(f"{device['model']} {device['uuid']} {device['address']}: {known} of "
          f"{len(values)} values, {len(device['links'])} links, "
          f"{len(device['processes'])} processes")
    print("  not told:", " ".join(name for name, value in values.items()
                                  if value is None))
    for name, (least, most) in BOUNDS.items():
        assert values[name] is not None, f"{name} is not told"
        assert least <= values[name] <= most, (name, values[name])


def check_smi(devices):
    if shutil.which("nvidia-smi") is None:
        print("nvidia-smi is not here: not compared")
        return
    asked = "name,uuid,pci.bus_id,memory.total"
    text = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader,nounits"],
        capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split(",")]
            for line in text.strip().splitlines()]
    gpus = [device for device in devices if device["kind"] == "gpu"]
    assert len(rows) == len(gpus), (rows, gpus)
    for row, device in zip(rows, gpus):
        assert row[0] == device["model"], (row, device)
        assert row[1] == device["uuid"], (row, device)
        assert row[2].upper() == device["address"].upper(), (row, device)
        total = device["values"]["memory_total"] >> 20
        assert abs(int(row[3]) - total) <= 1, (row, total)
    print(f"nvidia-smi says the same of {len(rows)} GPUs")


def main():
    kiln = sys.argv[1]
    facts = page(kiln)
    gpus = [device for device in facts["devices"] if device["kind"] == "gpu"]
    if not gpus:
        print("skip: no GPU is seen:", facts["problem"])
        return 77
    print("driver", facts["driver_release"], "CUDA", facts["driver_version"])
    for device in gpus:
        check_device(device)
    check_smi(facts["devices"])
    for path in facts["paths"]:
        print("path", path)
    print(subprocess.run([kiln, "top", "--once"], capture_output=True,
                         text=True, check=True).stdout)
    return subprocess.run([sys.executable, "-B", TERMINAL, kiln, "--sees",
                           "GPU 0"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
