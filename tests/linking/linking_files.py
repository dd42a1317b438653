#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nvcc makes, linked by Kiln, against nvcc's own device link.

    linking_files.py KILN

Objects, archives, fatbins (packed and not), relocatable cubins and PTX, alone
and mixed, go through `kiln link` with a real nvJitLink; the machine code of
each kernel and function must be byte for byte what `nvcc -dlink` makes of the
same sources. Debug sections must be there as nvcc has them. LTO-IR in objects
is linked to PTX, which runs on the software device. What nvJitLink leaves out
must be an error. Lines that begin with "| " are rows of the report that
tools/linking makes. Exits with 77 where there is no nvcc or no nvJitLink that
is as new.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

SKIP = 77
ARCH = "sm_80"
CALLER = """
extern __device__ int twice(int x);
extern __device__ int salt;
__constant__ int step[4] = {1, 2, 3, 4};
extern "C" __global__ void k(int* p) {
  __shared__ int part[64];
  part[threadIdx.x] = twice(threadIdx.x);
  __syncthreads();
  p[threadIdx.x] = part[threadIdx.x] + salt + step[threadIdx.x & 3];
}
"""
CALLED = """
__device__ int salt = 40;
__device__ __noinline__ int twice(int x) { return 2 * x; }
"""
WHOLE = 'extern "C" __global__ void w(int* p) { p[threadIdx.x] = 3; }\n'
WANTED = [2 * i + 40 + (i & 3) + 1 for i in range(32)]


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def run(*words):
    """A command; once more where the leak checker itself died, as it does when
    a thread of a library ends while it looks."""
    for _ in range(3):
        done = subprocess.run(words, capture_output=True, text=True,
                              check=False)
        if "LeakSanitizer has encountered a fatal error" not in done.stderr:
            break
    return done


def sections(path):
    """Name to bytes of the sections of an ELF file that have some."""
    with open(path, "rb") as file:
        data = file.read()
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<3H", data, 58)
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * size)
            for i in range(count)]
    text_at = rows[names][4]
    found = {}
    for name, kind, _, _, offset, length in rows:
        end = data.index(b"\0", text_at + name)
        if kind not in (0, 8):
            found[data[text_at + name:end].decode()] = \
                data[offset:offset + length]
    return found


def machine_code(path):
    return {name: code for name, code in sections(path).items()
            if name.startswith(".text.")}


class Files:
    """Makes files with nvcc, each once."""

    def __init__(self, nvcc, folder):
        self.nvcc, self.folder, self.made = nvcc, folder, {}
        for name, text in (("main.cu", CALLER), ("called.cu", CALLED),
                           ("whole.cu", WHOLE)):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, *words):
        if name not in self.made:
            done = run(self.nvcc, "-arch=" + ARCH, *[
                self.path(w) if w.endswith((".cu", ".o")) else w
                for w in words], "-o", self.path(name))
            self.made[name] = done.returncode == 0
            if done.returncode:
                print("nvcc makes no %s: %s" % (
                    name, (done.stdout + done.stderr).strip()[:200]))
        return self.path(name) if self.made[name] else None


def recipes():
    """Form, and how nvcc makes it of main.cu and of called.cu."""
    relocatable = ["-rdc=true"]
    pack = ["-Xfatbin", "-compress-all"]
    forms = [("object", "o", ["-c"] + relocatable),
             ("object, packed", "packed.o", ["-c"] + relocatable + pack),
             ("fatbin", "fatbin", ["-fatbin"] + relocatable),
             ("fatbin, packed", "packed.fatbin",
              ["-fatbin"] + relocatable + pack),
             ("fatbin, packed for size", "size.fatbin",
              ["-fatbin"] + relocatable + pack +
              ["-Xfatbin", "-compress-mode=size"]),
             ("relocatable cubin", "cubin", ["-cubin"] + relocatable),
             ("PTX", "ptx", ["-ptx"] + relocatable)]
    return forms


class Test:
    def __init__(self, kiln, files):
        self.kiln, self.files, self.failures, self.rows = kiln, files, 0, 0

    def report(self, inputs, output, result, good):
        self.rows += 1
        self.failures += not good
        print("| %s | %s | %s%s |" % (inputs, output, result,
                                      "" if good else " **WRONG**"))

    def link(self, out, inputs, *words):
        return run(self.kiln, "link", *inputs, "-o", self.files.path(out),
                   "--backend", "nvjitlink", "--arch", ARCH, *words)

    def compare(self, what, inputs, wanted):
        if None in inputs:
            return
        done = self.link("linked.cubin", inputs)
        if done.returncode:
            self.report(what, "cubin", done.stderr.strip().split("\n")[0],
                        False)
            return
        got = machine_code(self.files.path("linked.cubin"))
        same = got == wanted
        self.report(what, "cubin", "%d of %d sections of code are nvcc's" % (
            sum(got.get(name) == code for name, code in wanted.items()),
            len(wanted)), same)

    def all_forms(self, wanted):
        made = {}
        for form, end, words in recipes():
            made[form] = [self.files.make("%s.%s" % (name, end), *words,
                                          name + ".cu")
                          for name in ("main", "called")]
            self.compare("two files of %s" % form, made[form], wanted)
        archive = None
        if made["object"][1]:
            archive = self.files.make("libcalled.a", "-lib", "called.o")
        self.compare("object, archive", [made["object"][0], archive], wanted)
        self.compare("PTX, archive", [made["PTX"][0], archive], wanted)
        forms = list(made)
        for i, form in enumerate(forms):
            other = forms[(i + 1) % len(forms)]
            self.compare("%s, %s" % (form, other),
                         [made[form][0], made[other][1]], wanted)

    def debug(self):
        inputs = [self.files.make(name + ".debug.o", "-c", "-rdc=true", "-G",
                                  name + ".cu") for name in ("main", "called")]
        if None in inputs:
            return
        own = self.files.make("debug.cubin", "-dlink", "-cubin", "-G",
                              "main.debug.o", "called.debug.o")
        done = self.link("debug_linked.cubin", inputs, "--debug")
        if done.returncode or own is None:
            self.report("two objects with debug information", "cubin",
                        done.stderr.strip(), False)
            return
        ours = self.files.path("debug_linked.cubin")
        wanted = {n for n in sections(own) if "debug" in n}
        got = {n for n in sections(ours) if "debug" in n}
        told = json.loads(run(self.kiln, "inspect", "--json", ours).stdout)
        full = told["debug_info"]
        self.report("two objects with debug information", "cubin",
                    "%d of nvcc's %d debug sections, code equal: %s, "
                    "inspect: %s" % (
                        len(got & wanted), len(wanted),
                        machine_code(own) == machine_code(ours), full),
                    got == wanted and wanted and
                    machine_code(own) == machine_code(ours))

    def ltoir(self):
        inputs = [self.files.make(name + ".lto.o", "-c", "-rdc=true", "-dlto",
                                  name + ".cu") for name in ("main", "called")]
        if None in inputs:
            return
        done = self.link("linked.ptx", inputs, "--output", "ptx")
        if done.returncode:
            self.report("two objects with LTO-IR", "ptx", done.stderr.strip(),
                        False)
            return
        out = self.files.path("out.bin")
        done = run(self.kiln, "run", self.files.path("linked.ptx"), "--device",
                   "soft", "--grid", "1", "--block", "32", "--out",
                   "0=%s:i32[32]" % out)
        values = []
        if done.returncode == 0:
            with open(out, "rb") as file:
                values = list(struct.unpack("<32i", file.read()))
        self.report("two objects with LTO-IR", "ptx",
                    "runs on the software device, equals" if values == WANTED
                    else done.stderr.strip(), values == WANTED)
        done = self.link("lto.cubin", inputs, "--lto")
        code = machine_code(self.files.path("lto.cubin")) \
            if done.returncode == 0 else {}
        self.report("two objects with LTO-IR", "cubin",
                    "one section of code, the call is gone" if
                    list(code) == [".text.k"] else done.stderr.strip(),
                    list(code) == [".text.k"])

    def left_out(self):
        for form, end, words in (("finished cubin", "cubin", ["-cubin"]),
                                 ("finished object", "o", ["-c"]),
                                 ("fatbin of finished code", "fatbin",
                                  ["-fatbin"])):
            path = self.files.make("whole." + end, *words, "whole.cu")
            self.refused(form, [path], [])
            for more in [], ["--isolated"], ["--output", "relocatable"]:
                other = self.files.make("called.o", "-c", "-rdc=true",
                                        "called.cu")
                self.refused("object, " + form, [other, path], more)
            self.refused(form + ", PTX", [path, self.files.make(
                "called.ptx", "-ptx", "-rdc=true", "called.cu")], [])
            self.refused(form + ", object with LTO-IR", [path, self.files.make(
                "called.lto.o", "-c", "-rdc=true", "-dlto", "called.cu")],
                         ["--lto"])
        archive = self.files.make("libwhole.a", "-lib", "whole.o", "called.o")
        self.refused("archive of both", [archive], [])

    def used(self):
        """Names that are said to be used: kept, or refused with the nearest."""
        for form, end, words in (
                ("objects", "o", ["-c", "-rdc=true"]),
                ("objects with LTO-IR", "lto.o", ["-c", "-rdc=true", "-dlto"]),
                ("PTX", "ptx", ["-ptx", "-rdc=true"])):
            inputs = [self.files.make("%s.%s" % (name, end), *words,
                                      name + ".cu") for name in ("main",
                                                                 "called")]
            if None in inputs:
                continue
            lto = ["--lto"] if "LTO" in form else []
            for names, wanted in (
                    (["--kernels-used", "k"], None),
                    (["--kernels-used", "k", "--variables-used", "salt"], None),
                    (["--kernels-used", "kk"], 'mean "k"'),
                    (["--kernels-used", "nobody"], 'of: "k"'),
                    (["--kernels-used", "k", "--variables-used", "sal"],
                     'mean "salt"'),
                    (["--kernels-used", "k,k"], "by itself")):
                done = self.link("used.cubin", inputs, *lto, *names)
                out = self.files.path("used.cubin")
                good = done.returncode == 0 and ".text.k" in machine_code(out) \
                    if wanted is None else \
                    wanted in done.stderr and not os.path.exists(out)
                self.report(form, " ".join(names),
                            "refused" if done.returncode else "links", good)
                if os.path.exists(out):
                    os.remove(out)

    def options(self):
        """Options that change nothing are refused, or a note says so."""
        made = {end: [self.files.make("%s.%s" % (name, end), *words,
                                      name + ".cu") for name in ("main",
                                                                 "called")]
                for end, words in (("o", ["-c", "-rdc=true"]),
                                   ("ptx", ["-ptx", "-rdc=true"]))}
        mixed = [made["o"][0], made["ptx"][1]]
        for inputs, words, code, said in (
                (made["o"], ["--max-registers", "24"], 2, "machine code"),
                (made["o"], ["--ftz", "true"], 2, "no input is LTO-IR"),
                (made["ptx"], ["--ftz", "true"], 2, "no input is LTO-IR"),
                (made["o"], ["--lineinfo"], 0, "has no effect"),
                (mixed, ["--max-registers", "24"], 0, "machine code stays"),
                (made["ptx"], ["--max-registers", "24"], 0, "")):
            if None in inputs:
                continue
            done = self.link("options.cubin", inputs, *words)
            self.report("options", " ".join(words),
                        "refused" if done.returncode else "links",
                        done.returncode == code and said in done.stderr)

    def refused(self, form, inputs, more):
        """Finished code, whose kernel the error names or whose file it is."""
        if None in inputs:
            return
        out = self.files.path("left.cubin")
        done = self.link("left.cubin", inputs, *more)
        said = done.stderr.strip().split("\n")[0]
        good = done.returncode in (6, 7) and not os.path.exists(out) and \
            ('"w"' in said or "whole.cubin" in said)
        self.report(form, " ".join(more) or "cubin", "refused: " + said.replace(
            self.files.folder + "/", ""), good)

    def nvlink(self, *names):
        """Whether nvcc's own device linker takes them."""
        return run(tool("nvlink"), "--arch=" + ARCH, *names, "-o",
                   self.files.path("theirs.cubin")).returncode == 0

    def twice(self):
        """A name that two inputs define: nvJitLink itself reports success."""
        names = {}
        for name, text in TWICE.items():
            with open(self.files.path(name + ".cu"), "w",
                      encoding="ascii") as file:
                file.write(text)
            names[name] = [
                self.files.make(name + ".o", "-c", "-rdc=true", name + ".cu"),
                self.files.make(name + ".cubin", "-cubin", "-rdc=true",
                                name + ".cu")]
        order = list(TWICE)
        for number, one in enumerate(order):
            for two in order[number:]:
                if None in names[one] + names[two] or tool("nvlink") is None:
                    continue
                inputs = [names[one][0], names[two][1]]
                theirs = self.nvlink(*inputs)
                for words in ([], ["--isolated"]):
                    done = self.link("twice.cubin", inputs, *words)
                    ours = done.returncode == 0
                    good = ours == theirs and (
                        ours or "Multiple definition" in done.stderr)
                    if not good or not words:
                        self.report("%s and %s" % (one, two), "cubin",
                                    "links" if ours else "refused", good)

    def twice_lto(self):
        """LTO-IR, whose functions become its own, and a cubin with the same
        name: refused, unless the cubin's is weak or its own too."""
        for number, (kind, refused) in enumerate(TWICE_LTO):
            names = ["lto%d" % number, "plain%d" % number]
            for name, kernel in zip(names, ("one", "two")):
                with open(self.files.path(name + ".cu"), "w",
                          encoding="ascii") as file:
                    file.write(kind + 'extern "C" __global__ void %s(int* p) '
                               "{ *p = f(*p); }\n" % kernel)
            inputs = [self.files.path(names[0] + ".ltoir"),
                      self.files.make(names[1] + ".cubin", "-cubin",
                                      "-rdc=true", names[1] + ".cu")]
            made = run(self.kiln, "compile", self.files.path(names[0] + ".cu"),
                       "-o", inputs[0], "--arch", ARCH)
            if made.returncode or inputs[1] is None:
                continue
            for order in (inputs, inputs[::-1]):
                done = self.link("twice_lto.cubin", order, "--lto")
                good = done.returncode == 7 and \
                    "Multiple definition" in done.stderr if refused else \
                    done.returncode == 0
                self.report("LTO-IR and a cubin, both %s" % kind.split("f(")[0],
                            "cubin", "refused" if done.returncode else "links",
                            good)

    def damaged(self):
        """An object that is cut off."""
        whole = self.files.make("main.o", "-c", "-rdc=true", "main.cu")
        if whole is None:
            return
        with open(whole, "rb") as file:
            data = file.read()
        for size in range(1000, len(data), 1000):
            path, out = self.files.path("cut.o"), self.files.path("cut.cubin")
            with open(path, "wb") as file:
                file.write(data[:size])
            done = self.link("cut.cubin", [path])
            good = done.returncode == 1 and "cut.o" in done.stderr and \
                not os.path.exists(out)
            if not good or size == 1000:
                self.report("an object that is cut off", "cubin",
                            "refused" if good else done.stderr.strip(), good)


TWICE = {
    "function": "__device__ int f(int x) { return 2 * x; }\n",
    "other": "__device__ int f(int x) { return 3 * x; }\n",
    "static": "__device__ __noinline__ static int f(int x) { return x; }\n"
              "__global__ void s(int* p) { *p = f(*p); }\n",
    "declared": "extern __device__ int f(int x);\n"
                "__device__ int g(int x) { return x < 0 ? f(x) : x; }\n"
                "__device__ int v = 1;\n",
    "variable": "__device__ int v = 1;\n__device__ int f(int x) "
                "{ return v; }\n",
    "weak": "template <class T> __device__ __noinline__ T w(T x) "
            "{ return x; }\n__device__ int (*p)(int) = w<int>;\n",
    "weaker": "template <class T> __device__ __noinline__ T w(T x) "
              "{ return x; }\n__device__ int (*q)(int) = w<int>;\n",
}


# What both define, and whether a link of the two is refused.
TWICE_LTO = [
    ("__device__ __noinline__ int f(int x) { return 2 * x; }\n", True),
    ("template <class T> __device__ __noinline__ T f(T x) { return 2 * x; }\n",
     False),
    ("static __device__ __noinline__ int f(int x) { return 2 * x; }\n", False),
]


def main():
    kiln, nvcc = os.path.abspath(sys.argv[1]), tool("nvcc")
    if nvcc is None:
        print("skipped: no nvcc here")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        files = Files(nvcc, folder)
        inputs = [files.make(name + ".o", "-c", "-rdc=true", name + ".cu")
                  for name in ("main", "called")]
        own = files.make("dlink.cubin", "-dlink", "-cubin", "main.o",
                         "called.o") if None not in inputs else None
        if own is None:
            print("skipped: this nvcc links nothing")
            return SKIP
        test = Test(kiln, files)
        probe = test.link("probe.cubin", inputs, "--explain", "--json")
        told = json.loads(probe.stdout or "{}")
        if told.get("backend") != "nvjitlink" or \
                told.get("verdict") == "unknown":
            print("skipped: no nvJitLink that is as new as nvcc: %s" % (
                told.get("reasons") or probe.stdout))
            return SKIP
        wanted = machine_code(own)
        test.all_forms(wanted)
        test.debug()
        test.ltoir()
        test.left_out()
        test.used()
        test.options()
        test.twice()
        test.twice_lto()
        test.damaged()
        print("%d links, %d wrong" % (test.rows, test.failures))
        return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
