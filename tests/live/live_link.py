#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was linked runs on the GPU and equals, for each way to link it.

live_link.py KILN [DEVICE]: KILN is the command. Two PTX files, one calling a
function of the other, are linked by nvJitLink and by the driver, as a cubin
and, with an nvJitLink from 13.2 on, in two steps; each cubin runs on DEVICE
("cuda:0") and must give 2 * i + 40. Prints a line for each; exits with 77
where there is no such device.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

HEAD = ".version 7.8\n.target sm_75\n.address_size 64\n"
CALLED = HEAD + """
.visible .func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [a];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret;
}
"""
CALLER = HEAD + """
.extern .func (.param .b32 r) twice(.param .b32 a);
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d3, %d1, %d2;
  {
    .param .b32 p;
    .param .b32 q;
    st.param.b32 [p], %r1;
    call.uni (q), twice, (p);
    ld.param.b32 %r2, [q];
  }
  add.u32 %r3, %r2, 40;
  st.global.u32 [%d3], %r3;
  ret;
}
"""
SKIP = 77
NO_LINKER = (3, 4, 6)  # exit codes: none, none that fits, none that does this
WAYS = [("auto", []), ("nvjitlink", ["--backend", "nvjitlink"]),
        ("driver", ["--backend", "driver"])]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def link(kiln, device, inputs, out, *words):
    return run(kiln, "link", *inputs, "-o", out, "--device", device, "--json",
               *words)


def equals(kiln, device, cubin, folder):
    out = os.path.join(folder, "out.bin")
    done = run(kiln, "run", cubin, "--device", device, "--grid", "1", "--block",
               "32", "--out", "0=%s:u32[32]" % out)
    if done.returncode != 0:
        return "does not run: " + done.stderr.strip()
    with open(out, "rb") as file:
        got = struct.unpack("<32I", file.read())
    return "equals" if got == tuple(2 * i + 40 for i in range(32)) else \
        "DIFFERS: %s" % (got,)


def main():
    kiln = sys.argv[1]
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("a.ptx", "b.ptx")]
        for path, text in zip(paths, (CALLER, CALLED)):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        empty = os.path.join(folder, "empty.ptx")
        with open(empty, "w", encoding="ascii") as file:
            file.write(HEAD + ".visible .entry e() { ret; }\n")
        probe = run(kiln, "run", empty, "--device", device, "--grid", "1")
        if probe.returncode != 0:
            print("skipped: " + probe.stderr.strip())
            return SKIP
        for name, words in WAYS:
            cubin = os.path.join(folder, name + ".cubin")
            done = link(kiln, device, paths, cubin, *words)
            if done.returncode != 0:
                print("%s: %s" % (name, (done.stdout + done.stderr).strip()))
                wrong += name == "auto" or done.returncode not in NO_LINKER
                continue
            said = equals(kiln, device, cubin, folder)
            print("%s: linked by %s, %s" % (
                name, json.loads(done.stdout)["backend"], said))
            wrong += said != "equals"
        partial = os.path.join(folder, "partial.cubin")
        done = link(kiln, device, paths[1:], partial, "--output", "relocatable")
        if done.returncode in NO_LINKER:
            print("two steps: no nvJitLink of 13.2 or newer")
            return 1 if wrong else 0
        final = os.path.join(folder, "final.cubin")
        done = link(kiln, device, [partial, paths[0]], final)
        said = equals(kiln, device, final, folder) if done.returncode == 0 \
            else (done.stdout + done.stderr).strip()
        print("two steps: " + said)
        wrong += said != "equals"
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
