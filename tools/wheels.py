#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes environments of real wheels to try the search on.

    wheels.py [--all] FOLDER
    wheels.py --compilers FOLDER
    wheels.py --linking [--all] FOLDER
    wheels.py --dlpack FOLDER

FOLDER receives the wheels, one virtual environment for each environment (each
with cuda-pathfinder), toolkits and a conda prefix assembled from the same
wheels, and environments.json, which says what each is and which variables
belong to it. Without --all only the small wheels (35 MB). What is there
already is not fetched again. The package index is pip's own.

With --compilers FOLDER gets the runtime compilers that made the PTX in
tests/kernels, each with its headers: nvrtc-VERSION/lib and
nvrtc-VERSION/include (tools/gen_kernel_ptx.py takes such a folder).

With --linking FOLDER/linking gets compilers and linkers of several lines side
by side, without headers: an older nvJitLink and a pair of one newer line (146
MB); with --all the three lines of the report (tools/linking).

With --dlpack FOLDER/dlpack gets two who speak DLPack with versions: a NumPy for
this Python, and the wheel that has dlpack.h (20 MB).

Exits with 77, and the reason, where no wheel can be had.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

PATHFINDER = "cuda-pathfinder==1.9.0"
SKIP = 77

SMALL_13 = """
cuda-toolkit==13.0.2 nvidia-cuda-runtime==13.0.96 nvidia-nvfatbin==13.0.85
nvidia-cuda-cccl==13.0.85 nvidia-cuda-nvdisasm==13.2.78
nvidia-cuda-cuobjdump==13.2.78 nvidia-cuda-crt==13.0.88
nvidia-cuda-culibos==13.0.85 nvidia-cuda-cuxxfilt==13.0.85
nvidia-nvtx==13.0.85 nvidia-nvml-dev==13.0.87
nvidia-cuda-profiler-api==13.0.85 nvidia-cufile==1.15.1.6
""".split()
BIG_13 = """
nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-cuda-nvcc==13.0.88
nvidia-nvvm==13.0.88 nvidia-cuda-cupti==13.0.85
""".split()
SMALL_12 = """
cuda-toolkit==12.9.1 nvidia-cuda-runtime-cu12==12.9.79
nvidia-nvfatbin-cu12==12.9.82 nvidia-cuda-cccl-cu12==12.9.27
nvidia-cuda-profiler-api-cu12==12.9.79
""".split()
BIG_12 = """
nvidia-nvjitlink-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86
nvidia-cuda-nvrtc-cu12==12.9.86
""".split()
# One line says 13.0, another 13.5; numbers that are no line numbers.
SMALL_LINES = """
cuda-toolkit==13.0.3.0 nvidia-cuda-runtime==13.5.37 nvidia-nvfatbin==13.0.85
nvidia-cuda-cccl==13.3.4.3.1
""".split()
BIG_LINES = """
nvidia-nvjitlink==13.5.37 nvidia-cuda-nvrtc==13.0.88
""".split()
# In no environment; for the checks of numbers, pins and bundled headers.
SMALL_OTHER = ["cuda-toolkit==12.9.2.0", "cuda-toolkit==13.4.3"]
BIG_OTHER = ["nvidia-cuda-nvrtc==13.3.33", "nvidia-cuda-nvrtc==13.5.37"]
# Runtime compilers and the headers that go with them.
COMPILERS = {
    "12.9": """nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-cccl-cu12==12.9.27
               nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-nvcc-cu12==12.9.86
               """.split(),
    "13.0": """nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96
               nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85""".split(),
    "13.5": """nvidia-cuda-nvrtc==13.5.37 nvidia-cuda-runtime==13.5.37
               nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.3.4.3.1""".split(),
}


# What links what: with the first two numbers of a line in a folder's name.
LINKING = ["nvidia-nvjitlink==13.0.88", "nvidia-cuda-nvrtc==13.5.37",
           "nvidia-nvjitlink==13.5.37"]
LINKING_ALL = ["nvidia-cuda-nvrtc-cu12==12.9.86",
               "nvidia-nvjitlink-cu12==12.9.86", "nvidia-cuda-nvrtc==13.0.88"]


# NumPy's wheels are for one Python each, so its version is pip's choice.
DLPACK = ["numpy>=2.1", "apache-tvm-ffi==0.1.15.post2"]


def pip(*args):
    return subprocess.run([sys.executable, "-m", "pip", "-q",
                           "--disable-pip-version-check", "--retries", "1",
                           "--timeout", "30", *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def file_of(folder, requirement):
    """The wheel's path in the folder; None if it is not there."""
    name, _, version = requirement.partition("==")
    start = "%s-%s-" % (name.replace("-", "_"), version)
    for file in os.listdir(folder):
        if file.startswith(start) and "aarch64" not in file:
            return os.path.join(folder, file)
    return None


def fetch(folder, requirements):
    """Gets what is not there, many in one call of pip: two versions of one
    package need two."""
    missing = [one for one in dict.fromkeys(requirements)
               if not file_of(folder, one)]
    while missing:
        batch = {}
        for one in missing:
            batch.setdefault(one.partition("==")[0], one)
        done = pip("download", "--no-deps", "-d", folder, *batch.values())
        if done.returncode:
            print("skipped: pip cannot fetch %s: %s" % (
                " ".join(batch.values()),
                done.stdout.strip().split("\n")[-1]))
            sys.exit(SKIP)
        missing = [one for one in missing if one not in batch.values()]


def wheel_of(folder, requirement):
    """The wheel's path in the folder; fetched if it is not there."""
    fetch(folder, [requirement])
    path = file_of(folder, requirement)
    if not path:
        raise SystemExit("pip fetched no file for " + requirement)
    return path


# Told by what makes a folder: a change here makes all of them anew.
LAYOUT = "1"


def is_made(path, wheels):
    """Whether the folder was made of just these wheels; else it is gone."""
    try:
        with open(os.path.join(path, "made_of.txt"), encoding="utf-8") as file:
            if file.read() == stamp_of(wheels):
                return True
    except OSError:
        pass
    shutil.rmtree(path, ignore_errors=True)
    return False


def stamp_of(wheels):
    return "\n".join([LAYOUT, *map(os.path.basename, wheels), ""])


def is_now_made(path, wheels):
    with open(os.path.join(path, "made_of.txt"), "w",
              encoding="utf-8") as file:
        file.write(stamp_of(wheels))


def make_venv(path, wheels):
    """A virtual environment with these wheels, as pip installs them."""
    if is_made(path, wheels):
        return
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path],
                   check=True)
    done = pip("--python", os.path.join(path, "bin", "python"), "install",
               "--no-deps", "--no-index", "--no-compile", *wheels)
    if done.returncode:
        raise SystemExit(done.stdout)
    is_now_made(path, wheels)


def unpack(path, wheels, place):
    """Files of wheels where `place` puts them: a path, or None for nowhere."""
    for name in wheels:
        with zipfile.ZipFile(name) as wheel:
            for member in wheel.infolist():
                target = place(member.filename)
                if target is None or member.is_dir():
                    continue
                target = os.path.join(path, target)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as file:
                    file.write(wheel.read(member))
                if "/bin/" in member.filename:
                    os.chmod(target, 0o755)


def in_toolkit(name):
    """Where a CUDA 13 wheel's file lies in an installed toolkit."""
    if not name.startswith("nvidia/cu13/"):
        return None
    name = name[len("nvidia/cu13/"):]
    if name.startswith("lib/libnvvm."):
        return "nvvm/lib64/" + name[4:]
    if name.startswith("lib/"):
        return "targets/x86_64-linux/" + name
    if name.startswith("include/"):
        return "targets/x86_64-linux/" + name
    return name


def in_conda(name):
    """Where conda's packages of CUDA 13 have it."""
    if not name.startswith("nvidia/cu13/"):
        return None
    name = name[len("nvidia/cu13/"):]
    if name.startswith("lib/libnvvm."):
        return "nvvm/lib64/" + name[4:]
    return "targets/x86_64-linux/" + name if name.startswith("include/") \
        else name


def make_conda(path, wheels):
    if is_made(path, wheels):
        return
    unpack(path, wheels, in_conda)
    is_now_made(path, wheels)


def make_toolkit(path, wheels):
    if is_made(path, wheels):
        return
    unpack(path, wheels, in_toolkit)
    os.symlink("targets/x86_64-linux/include", os.path.join(path, "include"))
    os.symlink("targets/x86_64-linux/lib", os.path.join(path, "lib64"))
    os.makedirs(os.path.join(path, "extras", "CUPTI"))
    for name, target in (("include", "include"), ("lib64", "lib")):
        os.symlink("../../targets/x86_64-linux/" + target,
                   os.path.join(path, "extras", "CUPTI", name))
    is_now_made(path, wheels)


def in_compiler(name):
    """Where a compiler's folder has a wheel's file: its libraries, headers."""
    library = re.fullmatch(r"nvidia/[^/]+/lib/(libnvrtc[^/]*\.so[^/]*)", name)
    if library:
        return "lib/" + library.group(1)
    header = re.fullmatch(r"nvidia/[^/]+/include/(?:cccl/)?(.*)", name)
    if not header or header.group(1).startswith(("cub/", "thrust/")):
        return None
    return "include/" + header.group(1)


def make_compilers(folder, wheels):
    fetch(wheels, sum(COMPILERS.values(), []))
    for version, names in COMPILERS.items():
        path = os.path.join(folder, "nvrtc-" + version)
        files = [wheel_of(wheels, one) for one in names]
        if not is_made(path, files):
            unpack(path, files, in_compiler)
            is_now_made(path, files)
    print("%d compilers in %s" % (len(COMPILERS), folder))
    return 0


def in_linking(name):
    """Where a wheel's library lies for a link: the name, and no folders."""
    library = re.fullmatch(
        r"nvidia/[^/]+/lib/(lib(?:nvrtc|nvrtc-builtins|nvJitLink)\.so[^/]*)",
        name)
    return library.group(1) if library else None


def make_linking(folder, wheels, every):
    wanted = LINKING + (LINKING_ALL if every else [])
    fetch(wheels, wanted)
    for one in wanted:
        name, _, version = one.partition("==")
        path = os.path.join(folder, "linking", "%s-%s" % (
            "nvrtc" if "nvrtc" in name else "nvjitlink",
            ".".join(version.split(".")[:2])))
        file = wheel_of(wheels, one)
        if not is_made(path, [file]):
            unpack(path, [file], in_linking)
            is_now_made(path, [file])
    print("libraries in %s" % os.path.join(folder, "linking"))
    return 0


def make_dlpack(folder):
    path = os.path.join(folder, "dlpack")
    made_of = [*DLPACK, "python%d.%d" % sys.version_info[:2]]
    if not is_made(path, made_of):
        for one in DLPACK:
            done = pip("install", "--no-deps", "--no-compile", "--upgrade",
                       "--target", path, one)
            if done.returncode:
                print("skipped: pip cannot fetch %s: %s" % (
                    one, done.stdout.strip().split("\n")[-1]))
                return SKIP
        is_now_made(path, made_of)
    print("NumPy and dlpack.h in %s" % path)
    return 0


def make_odd(folder):
    """A root that looks like a pattern, and a product's root."""
    link = os.path.join(folder, "toolkit[13]")
    if not os.path.lexists(link):
        os.symlink("toolkit", link)
    include = os.path.join(folder, "product", "include")
    os.makedirs(include, exist_ok=True)
    for name in ("cudnn.h", "nccl.h"):
        with open(os.path.join(include, name), "w", encoding="utf-8") as file:
            file.write("/* only to be found */\n")


def environments(folder):
    """Name, what it is, which wheels, variables (PWD: where it is run)."""
    toolkit = os.path.join(folder, "toolkit")
    other = os.path.join(folder, "toolkit-lines")
    conda = os.path.join(folder, "conda")
    lib = os.path.join(toolkit, "lib64")
    return [
        ("empty", "nothing", "none", {}),
        ("cu13", "wheels of CUDA 13.0", "13", {}),
        ("cu12", "wheels of CUDA 12.9", "12", {}),
        ("mixed", "wheels of 12.9 and 13.0", "mixed", {}),
        ("lines", "wheels of 13.0 and 13.5", "lines", {}),
        ("toolkit", "CUDA_PATH", "none", {"CUDA_PATH": toolkit}),
        ("home", "CUDA_HOME; CUDA_PATH is empty", "none",
         {"CUDA_PATH": "", "CUDA_HOME": toolkit}),
        ("both", "CUDA_PATH and CUDA_HOME differ", "none",
         {"CUDA_PATH": toolkit, "CUDA_HOME": other}),
        ("nowhere", "CUDA_PATH leads nowhere", "none",
         {"CUDA_PATH": os.path.join(folder, "none"), "CUDA_HOME": toolkit}),
        ("cu12-toolkit", "wheels of 12.9, CUDA_PATH of 13.0", "12",
         {"CUDA_PATH": toolkit}),
        ("cu13-toolkit", "wheels of 13.0, CUDA_PATH of 13.5", "13",
         {"CUDA_PATH": other}),
        ("loader", "a toolkit on LD_LIBRARY_PATH", "none",
         {"LD_LIBRARY_PATH": lib}),
        ("cu12-loader", "wheels of 12.9, 13.0 on LD_LIBRARY_PATH", "12",
         {"LD_LIBRARY_PATH": lib}),
        ("loader-toolkit", "LD_LIBRARY_PATH of 13.0, CUDA_PATH of 13.5",
         "none", {"LD_LIBRARY_PATH": lib, "CUDA_PATH": other}),
        ("conda", "a conda prefix", "none", {"CONDA_PREFIX": conda}),
        ("cu12-conda", "wheels of 12.9, a conda prefix of 13.0", "12",
         {"CONDA_PREFIX": conda}),
        ("conda-toolkit", "a conda prefix, CUDA_PATH of 13.5", "none",
         {"CONDA_PREFIX": conda, "CUDA_PATH": other}),
        ("local", "CUDA_PATH is this machine's", "none",
         {"CUDA_PATH": "/usr/local/cuda"}),
        ("glob", "CUDA_PATH has brackets in its name", "none",
         {"CUDA_PATH": os.path.join(folder, "toolkit[13]")}),
        ("product", "CUDNN_PATH and NCCL_HOME, headers only", "none",
         {"CUDNN_PATH": os.path.join(folder, "product"),
          "NCCL_HOME": os.path.join(folder, "product")}),
        ("here", "an empty CONDA_PREFIX, a toolkit as working directory",
         "none", {"CONDA_PREFIX": "", "PWD": toolkit}),
    ]


def main():
    args = [arg for arg in sys.argv[1:]
            if arg not in ("--all", "--compilers", "--linking", "--dlpack")]
    if len(args) != 1 or args[0].startswith("-"):
        print(__doc__.strip())
        return 2
    if "--dlpack" in sys.argv[1:]:
        return make_dlpack(os.path.abspath(args[0]))
    if sys.version_info < (3, 11):
        print("skipped: cuda-pathfinder needs Python 3.11")
        return SKIP
    every = "--all" in sys.argv[1:]
    folder = os.path.abspath(args[0])
    wheels = os.path.join(folder, "wheels")
    os.makedirs(wheels, exist_ok=True)
    if "--compilers" in sys.argv[1:]:
        return make_compilers(folder, wheels)
    if "--linking" in sys.argv[1:]:
        return make_linking(folder, wheels, every)
    sets = {"none": []}
    names = {"13": SMALL_13, "12": SMALL_12, "lines": SMALL_LINES,
             "other": SMALL_OTHER}
    if every:
        names = {"13": SMALL_13 + BIG_13, "12": SMALL_12 + BIG_12,
                 "lines": SMALL_LINES + BIG_LINES,
                 "other": SMALL_OTHER + BIG_OTHER}
    fetch(wheels, sum(names.values(), [PATHFINDER]))
    for name, wanted in names.items():
        sets[name] = [wheel_of(wheels, one) for one in wanted]
    # Both cannot have the meta wheel.
    sets["mixed"] = sets["12"][1:] + sets["13"]
    pathfinder = wheel_of(wheels, PATHFINDER)
    make_toolkit(os.path.join(folder, "toolkit"), sets["13"])
    make_toolkit(os.path.join(folder, "toolkit-lines"), sets["lines"])
    make_conda(os.path.join(folder, "conda"), sets["13"])
    make_odd(folder)
    out = []
    for name, what, of, variables in environments(folder):
        path = os.path.join(folder, "venv-" + of)
        make_venv(path, sets[of] + [pathfinder])
        out.append({"name": name, "what": what, "venv": path,
                    "variables": variables,
                    "wheels": [os.path.basename(wheel) for wheel in sets[of]]})
    with open(os.path.join(folder, "environments.json"), "w",
              encoding="utf-8") as file:
        json.dump({"all": every, "environments": out}, file, indent=1)
    print("%d environments in %s" % (len(out), args[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
