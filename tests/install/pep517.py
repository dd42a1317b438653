#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of the command and builds examples/pep517 with it, isolated.

The way "python" only makes the environment that --python names; the others
start from copies of it. The other wheel of the build is a made one of NVRTC
13.0. The environment outside, which VIRTUAL_ENV names, has NVRTC 13.9: what
the built package says shows which one the build saw. Nothing is taken from a
network."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

LIBRARY = """int nvrtcVersion(int* major, int* minor);
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = %d;
  return 0;
}
"""
HEADER = "enum { NVRTC_SUCCESS = 0 };\nint nvrtcVersion(int*, int*);\n"
ASK = "import nvrtc_version_example as e; print(e.version())"


class Skip(Exception):
    pass


def run(command, cwd=None, drop=(), **variables):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("CUDA_", "KILN_", "CONDA_", "VIRTUAL_ENV",
                                  "LD_", "PIP_", "PYTHON") + tuple(drop))}
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False, cwd=cwd,
                            env={**env, **variables})
    if result.returncode != 0:
        raise SystemExit("%s\n%s" % (shlex.join(command), result.stdout))
    return result.stdout.strip()


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


def make_nvrtc(options, work, minor):
    """A wheel with the layout of NVIDIA's."""
    source = os.path.join(work, "nvrtc.c")
    library = os.path.join(work, "libnvrtc.so.13")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LIBRARY % minor)
    run([options.cc, "-shared", "-fPIC", source, "-o", library,
         "-Wl,-soname,libnvrtc.so.13"])
    stem = "nvidia_cuda_nvrtc-13.%d.88" % minor
    info = stem + ".dist-info"
    path = os.path.join(work, "wheels%d" % minor, stem + "-py3-none-any.whl")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(library, "rb") as file:
        content = {
            "nvidia/cu13/include/nvrtc.h": HEADER,
            "nvidia/cu13/lib/libnvrtc.so.13": file.read(),
            info + "/METADATA": "Metadata-Version: 2.1\n"
                                "Name: nvidia-cuda-nvrtc\n"
                                "Version: 13.%d.88\n" % minor,
            info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
                             "Root-Is-Purelib: true\nTag: py3-none-any\n"}
    records = "".join(name + ",,\n" for name in content)
    content[info + "/RECORD"] = records + info + "/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def make_environment(options, folder, *packages):
    """An environment with pip: a copy of the one that was made for all."""
    shutil.copytree(options.python, folder, symlinks=True)
    python = os.path.join(folder, "bin", "python")
    run([python, "-m", "pip", "install", "--no-index", "--no-deps",
         *packages])
    return python


def with_pip(options, work, wheels, out):
    outer = make_environment(options, os.path.join(work, "outer"),
                             make_nvrtc(options, work, 9))
    run([outer, "-m", "pip", "wheel", "--no-index", "--find-links", wheels,
         "--no-deps", "-w", out, os.path.join(work, "pep517")],
        CC=options.cc, VIRTUAL_ENV=os.path.join(work, "outer"))


def with_pip_plain(options, work, wheels, out):
    """A backend that names no folder: the command finds its own overlay."""
    path = os.path.join(work, "pep517", "backend", "cuda_backend.py")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    start = text.index("    sites = [")
    end = text.index("    command = [")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:start] + "    sites = []\n" + text[end:])
    with_pip(options, work, wheels, out)


def with_build(options, work, wheels, out):
    for python in (sys.executable, "/usr/bin/python3"):
        ask = subprocess.run([python, "-c", "import build.__main__, venv, "
                              "ensurepip"], check=False, cwd="/",
                             stderr=subprocess.DEVNULL)
        if ask.returncode == 0:
            break
    else:
        raise Skip("the Python package `build` is not installed")
    make_environment(options, os.path.join(work, "outer"),
                     make_nvrtc(options, work, 9))
    run([python, "-m", "build", "--wheel", "--outdir", out,
         os.path.join(work, "pep517")], CC=options.cc, PIP_NO_INDEX="1",
        PIP_FIND_LINKS=wheels, VIRTUAL_ENV=os.path.join(work, "outer"))


def with_command_alone(options, work, wheels, out):
    """The command in an environment: there, moved, and what it finds."""
    del out
    nvrtc = [name for name in os.listdir(wheels) if name.startswith("nvidia")]
    command = [name for name in os.listdir(wheels) if name.startswith("kiln")]
    inner = os.path.join(work, "inner")
    make_environment(options, inner, os.path.join(wheels, command[0]),
                     os.path.join(wheels, nvrtc[0]))
    make_environment(options, os.path.join(work, "outer"),
                     make_nvrtc(options, work, 9))
    kiln = os.path.join(inner, "bin", "kiln")
    outer = {"VIRTUAL_ENV": os.path.join(work, "outer")}
    said = run([kiln, "config", "--cflags", "nvrtc", "--scope=wheel"], **outer)
    expect("/inner/lib/" in said, "wheels beside the command come first: " +
           said)
    said = run([kiln, "config", "--cflags", "nvrtc", "--scope=wheel",
                "--python", os.path.join(work, "outer", "bin", "python")])
    expect("/outer/lib/" in said, "an interpreter can be named: " + said)
    moved = os.path.join(work, "anywhere")
    os.rename(kiln, moved)
    said = run([moved, "config", "--cflags", "nvrtc", "--scope=wheel"], **outer)
    expect("/outer/lib/" in said, "moved, it looks where the variables say")
    page = os.path.join(inner, "share", "man", "man1", "kiln-config.1")
    expect(os.path.exists(page), "the wheel brings the manual pages")
    needed = run(["readelf", "-d", moved])
    for line in needed.splitlines():
        expect("RPATH" not in line and "RUNPATH" not in line, "no run path")
        if "(NEEDED)" in line:
            expect(any(name in line for name in ("[libc.", "[libm.", "[ld-",
                                                 "[libdl.", "[libpthread.")),
                   "it needs the C library alone: " + line)


def check_wheel(options, work, wheels, out, minor):
    built = [name for name in os.listdir(out) if name.endswith(".whl")]
    expect(len(built) == 1, "one wheel was built")
    nvrtc = [name for name in os.listdir(wheels) if name.startswith("nvidia")]
    python = make_environment(options, os.path.join(work, "user"),
                              os.path.join(wheels, nvrtc[0]),
                              os.path.join(out, built[0]))
    said = run([python, "-c", ASK])
    expect(said == "(13, %d)" % minor, "the built package says " + said)


WAYS = {"pip": with_pip, "pip-plain": with_pip_plain,
        "build": with_build, "command": with_command_alone}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kiln", "cc", "source", "python"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--way", required=True,
                        choices=sorted([*WAYS, "python"]))
    options = parser.parse_args()
    if subprocess.run([sys.executable, "-c", "import venv, ensurepip"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: this Python makes no environments (venv, ensurepip)")
        return 77
    if options.way == "python":
        shutil.rmtree(options.python, ignore_errors=True)
        run([sys.executable, "-m", "venv", options.python])
        return 0
    work = tempfile.mkdtemp(prefix="kiln-pep517-")
    try:
        wheels = os.path.dirname(make_nvrtc(options, work, 0))
        out = os.path.join(work, "out")
        os.mkdir(out)
        shutil.copytree(os.path.join(options.source, "examples", "pep517"),
                        os.path.join(work, "pep517"))
        run([os.path.join(options.source, "tools", "make_wheel"), options.kiln,
             wheels])
        WAYS[options.way](options, work, wheels, out)
        if options.way != "command":
            check_wheel(options, work, wheels, out, 0)
    except Skip as reason:
        print("skipped: %s" % reason)
        return 77
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
