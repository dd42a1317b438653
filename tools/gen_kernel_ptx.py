#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/kernels/NAME.cu.ptx from tests/kernels/NAME.cu.

NVRTC is called through ctypes, so that nothing needs to be compiled first. It
is looked for in --nvrtc, CUDA_PATH, CUDA_HOME, /usr/local/cuda and the system
loader. The options are `--gpu-architecture=compute_75` and what the file's
`// nvrtc:` line says.

  gen_kernel_ptx.py            writes every file
  gen_kernel_ptx.py --check    compares; exit 77 (skip) without a compiler of
                               the version that made the files
"""
import argparse
import ctypes
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.join(HERE, "..", "tests", "kernels")
SKIP = 77


def find_nvrtc(explicit):
    names = []
    if explicit:
        names.append(explicit)
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"),
             "/usr/local/cuda"]
    for root in roots:
        for folder in ("lib64", "lib"):
            if root:
                names += sorted(glob.glob(
                    os.path.join(root, folder, "libnvrtc.so*")))
    names += ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def version(nvrtc):
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return "%d.%d" % (major.value, minor.value)


def options_of(text):
    found = re.search(r"^// nvrtc: *(.*)$", text, re.M)
    options = found.group(1).split() if found else []
    if not any(o.startswith("--gpu-architecture") for o in options):
        options.insert(0, "--gpu-architecture=compute_75")
    return options


def compile_text(nvrtc, name, text):
    program = ctypes.c_void_p()
    headers = {"assert.h": (
        "extern \"C\" __device__ void __assertfail(const char*, const char*, "
        "unsigned, const char*, size_t);\n"
        "#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, "
        "__LINE__, __func__, 1))\n")}
    count = len(headers)
    array = ctypes.c_char_p * count
    rc = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), name.encode(), count,
        array(*[h.encode() for h in headers.values()]),
        array(*[h.encode() for h in headers]))
    if rc:
        raise SystemExit("%s: NVRTC error %d" % (name, rc))
    options = [o.encode() for o in options_of(text)]
    rc = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options))
    if rc:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit("%s: %s" % (name, log.value.decode()))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


def with_header(nvrtc_version, name, text, ptx):
    return ("// SPDX-License-Identifier: Apache-2.0\n"
            "//\n"
            "// tests: made from %s by tools/gen_kernel_ptx.py with NVRTC %s\n"
            "// and %s.\n%s" % (name, nvrtc_version,
                                " ".join(options_of(text)),
                                ptx.rstrip("\n") + "\n"))


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--nvrtc", help="the library to use")
    parser.add_argument("file", nargs="*", help="only these .cu files")
    arguments = parser.parse_args()
    nvrtc = find_nvrtc(arguments.nvrtc)
    if nvrtc is None:
        print("skip: no NVRTC was found")
        return SKIP
    have = version(nvrtc)
    files = arguments.file or sorted(glob.glob(os.path.join(KERNELS, "*.cu")))
    failed = 0
    for path in files:
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as source:
            text = source.read()
        out = path + ".ptx"
        if arguments.check:
            with open(out, encoding="utf-8") as kept:
                old = kept.read()
            made = re.search(r"with NVRTC (\S+)", old).group(1)
            if made != have:
                print("skip: %s was made by NVRTC %s, here is %s"
                      % (name, made, have))
                return SKIP
        new = with_header(have, name, text, compile_text(nvrtc, name, text))
        if not arguments.check:
            with open(out, "w", encoding="utf-8") as kept:
                kept.write(new)
        elif old != new:
            print("%s.ptx differs from what NVRTC %s makes; run "
                  "tools/gen_kernel_ptx.py" % (name, have))
            failed = 1
    if arguments.check and not failed:
        print("%d files are as NVRTC %s makes them" % (len(files), have))
    return failed


if __name__ == "__main__":
    sys.exit(main())
