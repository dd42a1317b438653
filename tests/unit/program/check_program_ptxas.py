# SPDX-License-Identifier: Apache-2.0
#
# program: ptxas takes every program that the tests lower, for sm_75, sm_80 and
# sm_90. That takes minutes: a run asks of one file in SHARE, which one says
# KILN_TEST_SEED, for one of the three in turn; with KILN_FAULT_ALL of every
# file for each.
#
# usage: check_program_ptxas.py TEST...   each writes its texts with "collect"
import os
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = (75, 80, 90)
SHARE = 4


def find_ptxas():
    places = [os.environ.get("CUDA_PATH", ""), os.environ.get("CUDA_HOME", ""),
              "/usr/local/cuda"]
    found = shutil.which("ptxas")
    for place in places:
        path = os.path.join(place, "bin", "ptxas")
        if not found and place and os.access(path, os.X_OK):
            found = path
    return found


def main():
    ptxas = find_ptxas()
    if not ptxas:
        print("skip: no ptxas in PATH, CUDA_PATH or /usr/local/cuda")
        return 77
    every = bool(os.environ.get("KILN_FAULT_ALL"))
    share = 1 if every else SHARE
    seed = int(os.environ.get("KILN_TEST_SEED", "0"))
    wrong = taken = every_kernel = 0
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, test in enumerate(sys.argv[1:]):
            inner = os.path.join(folder, str(number))
            os.mkdir(inner)
            subprocess.run([test, "collect", inner], check=True,
                           stdout=subprocess.DEVNULL)
            names += [os.path.join(inner, name)
                      for name in sorted(os.listdir(inner))]
        # The largest first, so that each share takes about as long.
        names.sort(key=lambda name: (-os.path.getsize(name), name))
        for place, name in enumerate(names):
            with open(name) as file:
                kernels = file.read().count(".visible .entry")
            every_kernel += kernels
            if place % share != seed % share:
                continue
            least = int(re.search(r"_sm([0-9]+)", name).group(1))
            asked = [sm for sm in ARCHITECTURES if sm >= least]
            if not every:
                asked = [asked[place // share % len(asked)]]
            for sm in asked:
                run = subprocess.run(
                    [ptxas, "-O0", "-arch=sm_%d" % sm, "-o", os.devnull,
                     name],
                    capture_output=True, text=True)
                taken += kernels
                if run.returncode != 0:
                    wrong += 1
                    print("%s for sm_%d:\n%s" % (
                        os.path.basename(name), sm, run.stderr[:3000]))
    print("%d of %d kernels taken by ptxas, %d files refused" % (
        taken, every_kernel, wrong))
    return 1 if wrong or every_kernel < 1000 or taken == 0 else 0


sys.exit(main())
