#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples/build/ with every build system, through the installed `kiln`.

Against toolkits made for it: a local one in a folder with a space in its name,
and wheels, which have no links for development. NVRTC in them is a library of
one function. No GPU, no CUDA."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HEADER = """enum { NVRTC_SUCCESS = 0 };
int nvrtcVersion(int* major, int* minor);
"""
LIBRARY = """int nvrtcVersion(int* major, int* minor);
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = %d;
  return 0;
}
"""


def run(command, **variables):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("CUDA_", "KILN_", "CONDA_", "VIRTUAL_ENV",
                                  "LD_", "PKG_CONFIG"))}
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False,
                            env={**env, **variables})
    if result.returncode != 0:
        raise SystemExit("%s\n%s" % (shlex.join(command), result.stdout))
    return result.stdout.strip()


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_toolkit(options, root, lib, minor, link):
    source = os.path.join(root, "made.c")
    write(os.path.join(root, "include", "nvrtc.h"), HEADER)
    write(source, LIBRARY % minor)
    os.makedirs(os.path.join(root, lib))
    run([options.cc, "-shared", "-fPIC", source, "-Wl,-soname,libnvrtc.so.13",
         "-o", os.path.join(root, lib, "libnvrtc.so.13")])
    if link:
        os.symlink("libnvrtc.so.13", os.path.join(root, lib, "libnvrtc.so"))


def with_cmake(options, where, prefix, out):
    run([options.cmake, "-G", "Ninja", "-B", out, "-S",
         os.path.join(options.examples, "cmake"),
         "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_C_COMPILER=" + options.cc,
         "-DKILN_CONFIG_OPTIONS=" + ";".join(where)])
    run([options.cmake, "--build", out])


def with_make(options, where, prefix, out):
    run(["make", "-C", os.path.join(options.examples, "make"), "OUT=" + out,
         "CC=" + options.cc, "KILN=" + os.path.join(prefix, "bin", "kiln"),
         "KILN_WHERE=" + shlex.join(where)])


def with_meson(options, where, prefix, out):
    run(["meson", "setup", out, os.path.join(options.examples, "meson"),
         "-Dkiln_where=" + repr(where)], CC=options.cc,
        PATH=os.path.join(prefix, "bin") + ":" + os.environ["PATH"])
    run(["ninja", "-C", out])


def with_pkg_config(options, where, prefix, out):
    run([os.path.join(options.examples, "pkg-config", "build.sh"), out, *where],
        CC=options.cc, KILN=os.path.join(prefix, "bin", "kiln"))


SYSTEMS = {"cmake": with_cmake, "make": with_make, "meson": with_meson,
           "pkg-config": with_pkg_config}
NEEDS = {"cmake": "ninja", "make": "make", "meson": "meson",
         "pkg-config": "pkg-config"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cc", "cmake", "examples"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--system", required=True, choices=sorted(SYSTEMS))
    options = parser.parse_args()
    if shutil.which(NEEDS[options.system]) is None:
        print("skipped: %s is not installed" % NEEDS[options.system])
        return 77
    work = tempfile.mkdtemp(prefix="kiln-systems-")
    try:
        first = os.path.join(work, "first")
        prefix = os.path.join(work, "moved")
        run([options.cmake, "--install", options.build, "--prefix", first])
        os.rename(first, prefix)
        local = os.path.join(work, "my toolkit")
        site = os.path.join(work, "env", "lib", "python3", "site-packages")
        make_toolkit(options, local, "lib64", 0, True)
        make_toolkit(options, os.path.join(site, "nvidia", "cu13"), "lib", 1,
                     False)
        for number, root in enumerate((local, site)):
            out = os.path.join(work, "out%d" % number)
            if options.system != "meson":
                os.mkdir(out)
            where = ["--hermetic", "--scope=root", "--root=" + root]
            SYSTEMS[options.system](options, where, prefix, out)
            said = run([os.path.join(out, "nvrtc_version")])
            expect(said == "NVRTC 13.%d" % number,
                   "%s of %s printed %r" % (options.system, root, said))
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
