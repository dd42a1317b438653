#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on the NVRTC and nvJitLink libraries below some folders.

link_wheels.py PROGRAM FOLDER...: each library once, by name and size. Exits
with 77 where there is not one of each.
"""

import os
import re
import subprocess
import sys

SKIP = 77
NAMES = {"KILN_TEST_NVRTC": re.compile(r"libnvrtc\.so\.\d+$"),
         "KILN_TEST_NVJITLINK": re.compile(r"libnvJitLink\.so\.\d+$")}


def libraries(folders, name):
    found = {}
    for folder in folders:
        for place, _, files in os.walk(folder):
            for file in sorted(files):
                path = os.path.join(place, file)
                if name.match(file) and ":" not in path:
                    found.setdefault((file, os.path.getsize(path)), path)
    return sorted(found.values())


def main():
    environment = dict(os.environ)
    for variable, name in NAMES.items():
        paths = libraries(sys.argv[2:], name)
        if not paths:
            print("skipped: no %s below %s" % (name.pattern, sys.argv[2:]))
            return SKIP
        environment[variable] = ":".join(paths[:16])
    return subprocess.call([sys.argv[1]], env=environment)


if __name__ == "__main__":
    sys.exit(main())
