#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Facts about real libraries and programs, beside readelf and the owner.

    facts_beside.py --print FACTS_PRINT ROOT...

For every ELF file below the roots (environments of real wheels, a toolkit):

* what readelf says of its dynamic part and its build id;
* CHEAP says nothing that VERIFY does not say, too;
* symbols, sibling and release text of one file name one line, and it is the
  line of the wheel that owns it, where that wheel has line numbers;
* its sha256, where RECORD has one (files up to 64 MB).

Exits with 77, and the reason, where there is no root or no readelf.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

SKIP = 77
CHEAP, VERIFY = "2", "3"
HASH_LIMIT = 64 << 20
LIBRARIES = {"libnvrtc.so": "nvrtc", "libnvJitLink.so": "nvJitLink",
             "libnvvm.so": "nvvm", "libcudart.so": "cudart",
             "libnccl.so": "nccl"}
PROGRAMS = ("nvcc", "ptxas", "nvlink", "fatbinary", "cicc")
# Wheels whose number is the toolkit's line, of files that say it themselves.
LINE_WHEELS = re.compile(r"nvidia-(cuda-nvrtc|nvjitlink|cuda-nvcc|nvvm)"
                         r"(-cu\d+)?$")


def elf_files(roots):
    seen = set()
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in sorted(names):
                path = os.path.join(folder, name)
                real = os.path.realpath(path)
                if real in seen or not os.path.isfile(real):
                    continue
                with open(real, "rb") as file:
                    head = file.read(18)
                # Libraries and programs, no objects.
                if head[:4] == b"\177ELF" and head[16] in (2, 3):
                    seen.add(real)
                    yield path


def readelf(path):
    text = subprocess.run(["readelf", "-dnW", path], capture_output=True,
                          text=True, errors="replace").stdout
    one = lambda pattern: (re.findall(pattern, text) or [None])[0]
    return {
        "needed": re.findall(r"\(NEEDED\).*\[(.*)\]", text),
        "soname": one(r"\(SONAME\).*\[(.*)\]"),
        "rpath": one(r"\(RPATH\).*\[(.*)\]"),
        "runpath": one(r"\(RUNPATH\).*\[(.*)\]"),
        "build_id": one(r"Build ID: ([0-9a-f]+)"),
    }


def named(path):
    name = os.path.basename(path)
    if name in PROGRAMS:
        return "binary", name
    stem = name.split(".so")[0] + ".so"
    return ("lib", LIBRARIES.get(stem, "-")) if ".so" in name else ("binary",
                                                                    "-")


def facts_of(program, depth, path):
    kind, name = named(path)
    result = subprocess.run([program, depth, kind, name, path],
                            capture_output=True, text=True)
    if result.returncode != 0:
        return None, result.stderr.strip()
    return json.loads(result.stdout), ""


def line_of(version):
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return 1000 * int(match[1]) + 10 * int(match[2]) if match else 0


def differences(path, cheap, verify):
    for key, said in readelf(path).items():
        if verify[key] != said:
            yield "readelf: %s is %r, not %r" % (key, said, verify[key])
    for key, said in cheap.items():
        if key in ("walked", "problems", "pins", "same_owner"):
            continue
        if said and said != verify[key]:
            yield "VERIFY: %s is %r, CHEAP: %r" % (key, verify[key], said)
    lines = {verify[key] for key in ("symbol", "sibling", "release")} - {0}
    if len(lines) > 1:
        yield "it says lines %s" % sorted(lines)
    if verify["owner"] and LINE_WHEELS.match(verify["owner"]) and lines:
        if lines != {line_of(verify["owner_version"])}:
            yield "it says %s, its wheel is %s" % (sorted(lines),
                                                   verify["owner_version"])
    if verify["sha256"] and os.path.getsize(path) <= HASH_LIMIT:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).digest()
        text = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if text != verify["sha256"]:
            yield "its sha256 is %s, RECORD's %s" % (text, verify["sha256"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--print", dest="program", required=True)
    parser.add_argument("roots", nargs="+")
    args = parser.parse_args()
    roots = [r for r in args.roots if os.path.isdir(r)]
    if not roots or shutil.which("readelf") is None:
        print("skipped: no readelf, or none of %s" % " ".join(args.roots))
        return SKIP
    count = told = owned = failed = 0
    for path in elf_files(roots):
        cheap, error = facts_of(args.program, CHEAP, path)
        verify, again = facts_of(args.program, VERIFY, path)
        if cheap is None or verify is None:
            problems = [error or again]
        else:
            problems = list(differences(path, cheap, verify))
            told += any(verify[k] for k in ("symbol", "sibling", "release"))
            owned += verify["owner"] is not None
        count += 1
        for problem in problems:
            failed += 1
            print("%s: %s" % (path, problem))
    print("%d files, %d say their line, %d have an owner, %d differences" %
          (count, told, owned, failed))
    if count == 0:
        print("skipped: no ELF file below %s" % " ".join(roots))
        return SKIP
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
