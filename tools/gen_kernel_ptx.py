#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the PTX beside each tests/kernels/NAME.cu, two files of it:

  NAME.cu.ptx        NVRTC 13.0, compute_90
  NAME.cu.other.ptx  the compiler and architecture of the `// other:` line

NVRTC is called through ctypes, so that nothing needs to be compiled first.
Compilers with their headers are looked for in the folder that --compilers or
KILN_KERNEL_COMPILERS names (`tools/wheels.py --compilers` makes it), else in
$KILN_SOURCES/nvrtc, then in CUDA_PATH, CUDA_HOME and /usr/local/cuda. Options are the architecture and what
the file's `// nvrtc:` line says.

  gen_kernel_ptx.py            writes every file
  gen_kernel_ptx.py --check    compares; files whose compiler is not here are
                               counted as skipped; exit 77 (skip) if all are
"""
import argparse
import concurrent.futures
import ctypes
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
import kiln_sources  # noqa: E402

KERNELS = os.path.join(HERE, "..", "tests", "kernels")
SKIP = 77
FIRST = ("13.0", "compute_90")
OTHERS = {"12.9": ("compute_70", "compute_75"), "13.5": ("compute_80",)}
LIMIT = 6 << 20
# NVRTC has no assert.h of its own.
ASSERT = (
    "extern \"C\" __device__ void __assertfail(const char*, const char*, "
    "unsigned, const char*, size_t);\n"
    "#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, "
    "__LINE__, __func__, 1))\n")


# ---- The compiler, in a process for each library ----

def check(nvrtc, program, name, rc):
    if rc == 0:
        return
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    raise SystemExit("%s: NVRTC error %d: %s" % (name, rc, log.value.decode()))


def compile_text(nvrtc, name, text, options, expressions):
    """The PTX, and the lowered name of each expression."""
    program = ctypes.c_void_p()
    rc = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), name.encode(), 1,
        (ctypes.c_char_p * 1)(ASSERT.encode()),
        (ctypes.c_char_p * 1)(b"assert.h"))
    if rc:
        raise SystemExit("%s: NVRTC error %d" % (name, rc))
    for expression in expressions:
        check(nvrtc, program, name, nvrtc.nvrtcAddNameExpression(
            program, expression.encode()))
    encoded = [o.encode() for o in options]
    check(nvrtc, program, name, nvrtc.nvrtcCompileProgram(
        program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded)))
    lowered = {}
    for expression in expressions:
        found = ctypes.c_char_p()
        check(nvrtc, program, name, nvrtc.nvrtcGetLoweredName(
            program, expression.encode(), ctypes.byref(found)))
        lowered[expression] = found.value.decode()
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode(), lowered


def version_of(library):
    nvrtc = ctypes.CDLL(library)
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return "%d.%d" % (major.value, minor.value)


def compile_jobs(library, jobs):
    """As a process of its own: two NVRTCs in one get into each other's way."""
    nvrtc = ctypes.CDLL(library)
    return [unless_headers_lack(nvrtc, job) for job in jobs]


def unless_headers_lack(nvrtc, job):
    """None where the compiler is here without the headers it needs."""
    try:
        return compile_text(nvrtc, *job)
    except SystemExit as why:
        if "cannot open source file" in str(why):
            return None
        raise


def worker():
    library, jobs = json.load(sys.stdin)
    if jobs is None:
        answer = version_of(library)
    else:
        answer = compile_jobs(library, jobs)
    json.dump(answer, sys.stdout)


def ask(library, jobs):
    done = subprocess.run([sys.executable, __file__, "--worker"],
                          input=json.dumps([library, jobs]),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if jobs is None:
        return None
    raise SystemExit(done.stderr.strip())


# ---- Which compilers are here ----

def find_compilers(folder):
    """{version: (library, folder of headers)}"""
    roots = sorted(glob.glob(os.path.join(folder, "nvrtc-*"))) if folder \
        else []
    roots += [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"),
              "/usr/local/cuda"]
    found, tried = {}, set()
    for root in filter(None, roots):
        for library in sorted(glob.glob(os.path.join(
                root, "lib*", "libnvrtc.so.*"))):
            library = os.path.realpath(library)
            if library in tried or ".alt." in library:
                continue
            tried.add(library)
            version = ask(library, None)
            if version and version not in found:
                found[version] = (library, os.path.join(root, "include"))
    return found


# ---- What a file wants ----

class Wanted:
    """One PTX file of one .cu."""

    def __init__(self, path, text, version, architecture, ending):
        self.name, self.text = os.path.basename(path), text
        self.version, self.architecture = version, architecture
        self.out = path + ending
        found = re.search(r"^// nvrtc: *(.*)$", text, re.M)
        self.options = ["--gpu-architecture=" + architecture] + (
            found.group(1).split() if found else [])
        # A kernel that is not extern "C" is named as C++ names it.
        self.expressions = sorted({
            entry for entry in re.findall(r"^// run: *(.+)$", text, re.M)
            if re.search(r"[<:]", entry)})

    def job(self, headers):
        return (self.name, self.text,
                self.options + ["--include-path=" + path
                                for path in (headers, headers + "/cccl")],
                self.expressions)

    def file(self, ptx, lowered):
        names = "".join("// entry: %s is %s\n" % (e, lowered[e])
                        for e in self.expressions)
        return ("// SPDX-License-Identifier: Apache-2.0\n//\n"
                "// tests: made from %s by tools/gen_kernel_ptx.py with "
                "NVRTC %s\n// and %s.\n%s%s\n" % (
                    self.name, self.version, " ".join(self.options), names,
                    ptx.rstrip("\n")))


def wanted_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    other = re.search(r"^// other: *(\S+) (\S+)$", text, re.M)
    if not other or other.group(2) not in OTHERS.get(other.group(1), ()):
        raise SystemExit(
            "%s: needs a line `// other: VERSION ARCHITECTURE`, one of %s"
            % (path, ", ".join("%s %s" % (v, a) for v in OTHERS
                               for a in OTHERS[v])))
    return [Wanted(path, text, *FIRST, ".ptx"),
            Wanted(path, text, *other.groups(), ".other.ptx")]


def parts_of(list_, count):
    return [list_[i::count] for i in range(count) if list_[i::count]]


def make(wanted, compilers):
    """[(wanted, text)] of those whose compiler is here."""
    jobs = []
    for version in sorted({w.version for w in wanted}):
        if version in compilers:
            mine = [w for w in wanted if w.version == version]
            jobs += [(compilers[version], part)
                     for part in parts_of(mine, os.cpu_count() or 1)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda job: ask(
            job[0][0], [w.job(job[0][1]) for w in job[1]]), jobs))
    return [(w, w.file(*answer)) for job, some in zip(jobs, answers)
            for w, answer in zip(job[1], some) if answer]


def is_as_kept(wanted, text):
    try:
        with open(wanted.out, encoding="utf-8") as file:
            return file.read() == text
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compilers",
                        default=os.environ.get("KILN_KERNEL_COMPILERS") or
                        kiln_sources.find("nvrtc"),
                        help="a folder made by tools/wheels.py --compilers")
    parser.add_argument("--worker", action="store_true",
                        help=argparse.SUPPRESS)
    parser.add_argument("file", nargs="*", help="only these .cu files")
    arguments = parser.parse_args()
    if arguments.worker:
        worker()
        return 0
    files = arguments.file or sorted(glob.glob(os.path.join(KERNELS, "*.cu")))
    wanted = [w for path in files for w in wanted_of(path)]
    made = make(wanted, find_compilers(arguments.compilers))
    failed = 0
    for one, text in made:
        if arguments.check and not is_as_kept(one, text):
            print("%s differs from what NVRTC %s makes; run "
                  "tools/gen_kernel_ptx.py" % (os.path.basename(one.out),
                                               one.version))
            failed = 1
        elif not arguments.check:
            with open(one.out, "w", encoding="utf-8") as file:
                file.write(text)
    for version in sorted({w.version for w in wanted}):
        mine = [w for w in wanted if w.version == version]
        done = sum(w.version == version for w, _ in made)
        print("NVRTC %s: %d files" % (version, done))
        if done < len(mine):
            print("NVRTC %s: %d files left out, it or its headers are not here"
                  % (version, len(mine) - done))
    if len(made) < len(wanted):
        print(kiln_sources.why_not("nvrtc"))
    size = sum(os.path.getsize(path) for path in glob.glob(
        os.path.join(KERNELS, "*.ptx")))
    print("%.2f MiB of PTX in all" % (size / (1 << 20)))
    if size > LIMIT:
        print("that is more than %d MiB" % (LIMIT >> 20))
        failed = 1
    if not made or (not arguments.check and len(made) < len(wanted)):
        return SKIP
    return failed


if __name__ == "__main__":
    sys.exit(main())
