# SPDX-License-Identifier: Apache-2.0
"""A PEP 517 backend that compiles C against CUDA wheels, found by `kiln`.

In-tree and without a dependency of its own; what matters is `cuda_config`.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile

NAME = "nvrtc_version_example"
VERSION = "1.0"
REQUIRES = "nvidia-cuda-nvrtc>=13"


def cuda_config(*items):
    """What `kiln config --json` says of the wheels that this build may use.

    Those are the ones on sys.path: an isolated build has an overlay there that
    no variable names, while VIRTUAL_ENV still names the environment outside.
    No toolkit of the system will do: the wheel that is made requires wheels.
    """
    sites = [path for path in sys.path
             if os.path.isdir(os.path.join(path, "nvidia"))]
    command = ["kiln", "config", "--json", "--scope=wheel", *items]
    if sites:
        command += ["--hermetic"]
        command += ["--site=" + os.path.abspath(path) for path in sites]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    answer = json.loads(result.stdout)
    if result.returncode != 0:
        error = answer["error"]
        raise SystemExit("%s\nFix: %s" % (error["message"], error["fix"]))
    return answer


def run_path(config):
    """Where the libraries will be: beside this package, not in the overlay."""
    folders = []
    for folder in config["rpath_dirs"]:
        _, found, inside = folder.rpartition("/nvidia/")
        folders.append("$ORIGIN/../nvidia/" + inside if found else folder)
    return ["-Wl,-rpath," + folder for folder in folders]


def compile_native(target):
    config = cuda_config("nvrtc")
    source = os.path.join(NAME, "native.c")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", source,
                    "-o", target, *config["cflags"], *config["libs"],
                    *run_path(config)], check=True)


def add(archive, records, name, data):
    archive.writestr(name, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    records.append("%s,sha256=%s,%d\n" % (
        name, digest.decode().rstrip("="), len(data)))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_")
    stem = "%s-%s" % (NAME, VERSION)
    info = stem + ".dist-info"
    wheel = "%s-%s.whl" % (stem, tag)
    native = os.path.join(wheel_directory, "native.so")
    compile_native(native)
    records = []
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for path, name in ((os.path.join(NAME, "__init__.py"), "__init__.py"),
                           (native, "native.so")):
            with open(path, "rb") as file:
                add(archive, records, NAME + "/" + name, file.read())
        add(archive, records, info + "/METADATA",
            ("Metadata-Version: 2.1\nName: nvrtc-version-example\n"
             "Version: %s\nRequires-Dist: %s\n" % (VERSION, REQUIRES)).encode())
        add(archive, records, info + "/WHEEL",
            ("Wheel-Version: 1.0\nGenerator: cuda_backend\n"
             "Root-Is-Purelib: false\nTag: %s\n" % tag).encode())
        archive.writestr(info + "/RECORD",
                         "".join(records) + info + "/RECORD,,\n")
    os.remove(native)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("this example is built from its folder")
