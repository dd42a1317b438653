#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln_find_cuda of the installed CMake package: all cases, or --case NAME.

The toolkit is made for it: a shared NVRTC, the driver's stub, and static
libraries that need each other and the system as the real ones do. No GPU, no
CUDA; the programs are run, but the one that is linked with the stub."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

C = {
    "nvrtc": "int nvrtcVersion(void); int nvrtcVersion(void) { return 13; }",
    "cuda": "int cuInit(unsigned f); int cuInit(unsigned f) {"
            " return (int)f; }",
    "cudart": "#include <dlfcn.h>\n#include <pthread.h>\n"
              "int cudaVersion(void);\n"
              "int cudaVersion(void) { pthread_mutex_t m ="
              " PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m);"
              " return dlopen(0, RTLD_LAZY) ? 13000 : 0; }",
    "cublas": "int cublasLt(void); int cublas(void);"
              "int cublas(void) { return cublasLt(); }",
    "cublasLt": "int culibos(void); int cublasLt(void);"
                "int cublasLt(void) { return culibos() + 1; }",
    "culibos": "int culibos(void); int culibos(void) { return 7; }",
}
HEADERS = {
    "nvrtc.h": "int nvrtcVersion(void);\n",
    "cuda.h": "#define CUDA_VERSION 13000\nint cuInit(unsigned);\n",
    "cuda_runtime.h": "int cudaVersion(void);\n",
    "cublas_v2.h": "#include <cuda_runtime.h>\nint cublas(void);\n",
    "cublas.h": "#include \"cublas_v2.h\"\n",
    "crt/host_config.h": "\n",
}

# What a project says after find_package, and its program; what CMake or the
# program says then.
CASES = {
    "static": (
        "kiln_find_cuda(REQUIRED STATIC COMPONENTS cublas cudart)\n"
        "add_executable(app main.c)\n"
        "target_link_libraries(app PRIVATE kiln::cuda_cublas"
        " kiln::cuda_cudart)\n",
        "#include <stdio.h>\n#include <cublas.h>\n"
        "int main(void) { printf(\"%d %d\", cublas(), cudaVersion());"
        " return 0; }\n", "8 13000"),
    "static-name": (
        "kiln_find_cuda(REQUIRED COMPONENTS nvrtc cudart_static)\n"
        "add_executable(app main.c)\n"
        "target_link_libraries(app PRIVATE kiln::cuda_nvrtc"
        " kiln::cuda_cudart_static)\n",
        "#include <stdio.h>\n#include <cuda_runtime.h>\n#include <nvrtc.h>\n"
        "int main(void) { printf(\"%d %d\", nvrtcVersion(), cudaVersion());"
        " return 0; }\n", "13 13000"),
    "stub": (
        "kiln_find_cuda(REQUIRED COMPONENTS cuda)\n"
        "add_executable(app main.c)\n"
        "target_link_libraries(app PRIVATE kiln::cuda_cuda)\n",
        "#include <cuda.h>\nint main(void) { return cuInit(0); }\n", None),
    "components": (
        "kiln_find_cuda(REQUIRED COMPONENTS nvrtc headers nvcc)\n"
        "kiln_find_cuda(REQUIRED COMPONENTS nvrtc cudart_static)\n"
        "foreach(name nvrtc headers nvcc cudart_static)\n"
        "  if(NOT TARGET kiln::cuda_${name})\n"
        "    message(FATAL_ERROR \"no target ${name}\")\n  endif()\n"
        "endforeach()\n"
        "if(TARGET kiln::cuda_cublas OR NOT KILN_CUDA_FOUND)\n"
        "  message(FATAL_ERROR \"targets that nobody asked for\")\n"
        "endif()\n"
        "get_target_property(nvcc kiln::cuda_nvcc IMPORTED_LOCATION)\n"
        "message(STATUS \"so: ${KILN_CUDA_VERSION} ${nvcc}\")\n",
        None, "-- so: 13.0 */kit/bin/nvcc"),
    "missing": (
        "kiln_find_cuda(COMPONENTS nvrtc cudnn)\n"
        "if(KILN_CUDA_FOUND OR TARGET kiln::cuda_nvrtc)\n"
        "  message(FATAL_ERROR \"found\")\nendif()\n"
        "kiln_find_cuda(QUIET COMPONENTS nvjitlink)\n"
        "message(STATUS \"so: ${KILN_CUDA_FOUND}\")\n",
        None, "-- so: FALSE"),
    "missing-required": (
        "kiln_find_cuda(REQUIRED COMPONENTS nvrtc cudnn)\n", None,
        "!lacks lib cudnn"),
    "unknown": ("kiln_find_cuda(REQUIRED COMPONENTS nvrtcc)\n", None,
                "!the catalog has no component \"nvrtcc\""),
    "version": (
        "kiln_find_cuda(REQUIRED COMPONENTS headers CTK_VERSION \"<13\")\n",
        None, "!<13"),
    "no-components": ("kiln_find_cuda(REQUIRED)\n", None,
                      "!there are no COMPONENTS"),
    "bad-argument": ("kiln_find_cuda(REQUIRED COMPONENT nvrtc)\n", None,
                     "!what is"),
    "no-command": ("set(KILN_EXECUTABLE /nonexistent)\n"
                   "kiln_find_cuda(REQUIRED COMPONENTS nvrtc)\n", None,
                   "!set KILN_EXECUTABLE"),
}


def call(command):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("CUDA_", "KILN_", "CONDA_", "VIRTUAL_ENV",
                                  "LD_"))}
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, env=env)


def run(command):
    result = call(command)
    if result.returncode != 0:
        raise SystemExit("%s\n%s" % (shlex.join(command), result.stdout))
    return result.stdout


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_toolkit(cc, kit):
    """Each library from its line of C; the static ones each on their own."""
    lib = os.path.join(kit, "lib64")
    for name, text in HEADERS.items():
        write(os.path.join(kit, "include", name), text)
    os.makedirs(os.path.join(lib, "stubs"))
    for name, text in C.items():
        write(os.path.join(kit, "src", name + ".c"), text)
    shared = {"nvrtc": (lib, "libnvrtc.so.13", "libnvrtc.so.13"),
              "cuda": (os.path.join(lib, "stubs"), "libcuda.so",
                       "libcuda.so.1")}
    for name, (folder, file, soname) in shared.items():
        run([cc, "-shared", "-fPIC", os.path.join(kit, "src", name + ".c"),
             "-Wl,-soname," + soname, "-o", os.path.join(folder, file)])
    for name, file in (("cudart", "libcudart_static.a"),
                       ("cublas", "libcublas_static.a"),
                       ("cublasLt", "libcublasLt_static.a"),
                       ("culibos", "libculibos.a")):
        part = os.path.join(kit, "src", name + ".o")
        run([cc, "-fPIC", "-c", part[:-1] + "c", "-o", part])
        run(["ar", "rcs", os.path.join(lib, file), part])
    write(os.path.join(kit, "bin", "nvcc"), "#!/bin/sh\n")
    os.chmod(os.path.join(kit, "bin", "nvcc"), 0o755)


def check_stub(app):
    """The driver is asked for by its own name, and not in the stub's folder."""
    said = run(["readelf", "-d", app])
    expect("[libcuda.so.1]" in said, "the program needs libcuda.so.1:\n" + said)
    expect("stubs" not in said, "no run path leads to the stub:\n" + said)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cc", "cmake"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--case", choices=sorted(CASES))
    options = parser.parse_args()
    for tool in ("ninja", "ar", "readelf"):
        if shutil.which(tool) is None:
            print("skipped: %s is not installed" % tool)
            return 77
    work = tempfile.mkdtemp(prefix="kiln-find-cuda-")
    try:
        prefix, kit = os.path.join(work, "kiln"), os.path.join(work, "a", "kit")
        run([options.cmake, "--install", options.build, "--prefix", prefix])
        make_toolkit(options.cc, kit)
        for name in [options.case] if options.case else sorted(CASES):
            run_case(options, name, prefix, kit, os.path.join(work, name))
            print("%s: ok" % name)
    finally:
        shutil.rmtree(work)
    return 0


def run_case(options, name, prefix, kit, work):
    rest, program, wanted = CASES[name]
    write(os.path.join(work, "CMakeLists.txt"),
          "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C)\n"
          "find_package(kiln REQUIRED)\n" + rest)
    if program is not None:
        write(os.path.join(work, "main.c"), program)
    out = os.path.join(work, "out")
    made = call([options.cmake, "-G", "Ninja", "-B", out, "-S", work,
                 "-DCMAKE_PREFIX_PATH=" + prefix,
                 "-DCMAKE_C_COMPILER=" + options.cc,
                 "-DKILN_CONFIG_OPTIONS=--hermetic;--scope=root;--root=" + kit])
    try:
        check(options, made, out, (name, program, wanted))
    except SystemExit as error:
        raise SystemExit("case %s: %s" % (name, error)) from None


def check(options, made, out, case):
    name, program, wanted = case
    said = " ".join(made.stdout.split())
    if wanted is not None and wanted.startswith("!"):
        expect(made.returncode != 0, "CMake stops:\n" + made.stdout)
        expect(wanted[1:] in said, "it says %r:\n%s" % (wanted[1:],
                                                         made.stdout))
        expect("kiln_find_cuda: " in said, "it says who:\n" + made.stdout)
        return
    expect(made.returncode == 0, "CMake goes on:\n" + made.stdout)
    if program is None:
        before, _, after = wanted.partition("*")
        expect(before in said and after in said,
               "it says %r:\n%s" % (wanted, made.stdout))
        return
    run([options.cmake, "--build", out])
    app = os.path.join(out, "app")
    if name == "stub":
        check_stub(app)
        return
    printed = run([app])
    expect(printed == wanted, "%r is %r" % (printed, wanted))


if __name__ == "__main__":
    sys.exit(main())
