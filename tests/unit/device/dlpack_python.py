#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DLPack beside others who speak it: a real dlpack.h, and NumPy.

    dlpack_python.py LIBKILN [--wheels FOLDER]

Compiles dlpack_header.c against every dlpack.h there is, then shows memory of
the software device to NumPy through ctypes, in capsules with and without a
version, as that NumPy asks for them, and takes NumPy's. With --wheels the
header and the NumPy are those that tools/wheels.py --dlpack has put there,
else the system's.

Exits with 77, and the reason, where there is neither.
"""

import ctypes
import gc
import importlib
import os
import shutil
import subprocess
import sys

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PINNED = 1
BYTES = 4096
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAILED: " + what)


# ---- The types, once more ----

class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device),
                ("rank", ctypes.c_int32), ("type", Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("owner", ctypes.c_void_p),
                ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("owner", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class View(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("type", Type), ("read_only", ctypes.c_uint32),
                ("offset", ctypes.c_uint64),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


class BufferOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("pool", ctypes.c_void_p)]


FORMS = {b"dltensor": (Legacy, "kiln_dlpack_export_legacy",
                       "kiln_dlpack_import_legacy"),
         b"dltensor_versioned": (Versioned, "kiln_dlpack_export",
                                 "kiln_dlpack_import")}

# ---- Capsules ----

CAPSULE_END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, CAPSULE_END]
# The capsule itself, whose destructor must not make another reference to it.
api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


@CAPSULE_END
def end_capsule(capsule):
    """A capsule that nobody has taken deletes what it holds."""
    for name, (form, _, _) in FORMS.items():
        if api.PyCapsule_IsValid(capsule, name):
            at = api.PyCapsule_GetPointer(capsule, name)
            form.from_address(at).deleter(at)


# ---- Kiln ----

class Kiln:
    """The library, one software device, and how many tensors were deleted."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.kiln_status_message.restype = ctypes.c_char_p
        self.lib.kiln_status_message.argtypes = [ctypes.c_void_p]
        self.lib.kiln_status_free.argtypes = [ctypes.c_void_p]
        for name in ("size", "address", "host"):
            one = getattr(self.lib, "kiln_buffer_" + name)
            one.restype = ctypes.c_uint64 if name != "host" else ctypes.c_void_p
            one.argtypes = [ctypes.c_void_p]
        for name in ("buffer", "device", "runtime"):
            one = getattr(self.lib, "kiln_%s_release" % name)
            one.restype = None
            one.argtypes = [ctypes.c_void_p]
        self.runtime = self.made("kiln_runtime_create", None)
        self.device = self.made("kiln_runtime_open_device", self.runtime,
                                b"soft")
        self.deleted = 0
        self.given = []  # deleters that C may still call

    def refusal(self, name, *args):
        """The message of a status, None for OK."""
        call = getattr(self.lib, name)
        call.restype = ctypes.c_void_p
        status = call(*args)
        if not status:
            return None
        text = self.lib.kiln_status_message(status).decode()
        self.lib.kiln_status_free(status)
        return text

    def made(self, name, *args):
        out = ctypes.c_void_p()
        args = [ctypes.c_void_p(one) if isinstance(one, int) else one
                for one in args]
        text = self.refusal(name, *args, ctypes.byref(out))
        if text is not None:
            raise SystemExit("%s: %s" % (name, text))
        return out.value

    def buffer(self):
        options = BufferOptions(ctypes.sizeof(BufferOptions), PINNED, None,
                                None)
        return self.made("kiln_buffer_create", self.device,
                         ctypes.c_uint64(BYTES), ctypes.byref(options))

    def host(self, buffer):
        return self.lib.kiln_buffer_host(buffer)

    def capsule(self, name, buffer, view):
        form, export, _ = FORMS[name]
        at = self.made(export, buffer, ctypes.byref(view))
        shown = form.from_address(at)
        first = DELETER(ctypes.cast(shown.deleter, ctypes.c_void_p).value)

        def count(tensor):
            self.deleted += 1
            first(tensor)

        self.given.append(DELETER(count))
        shown.deleter = self.given[-1]
        return api.PyCapsule_New(at, name, end_capsule)

    def taken(self, capsule):
        """The buffer of a capsule, and None; or None and the refusal."""
        own = id(capsule)  # which a reference to it here keeps
        for name, (form, _, adopt) in FORMS.items():
            if not api.PyCapsule_IsValid(own, name):
                continue
            at = api.PyCapsule_GetPointer(own, name)
            out = ctypes.c_void_p()
            text = self.refusal(adopt, ctypes.c_void_p(self.device),
                                ctypes.c_void_p(at), ctypes.byref(out))
            if text is None:
                # Names of capsules are not copied.
                self.used = b"used_" + name
                api.PyCapsule_SetName(own, self.used)
            return out.value, text
        raise SystemExit("a capsule of no known name")

    def end(self):
        self.lib.kiln_device_release(self.device)
        self.lib.kiln_runtime_release(self.runtime)


class Shown:
    """Memory as the array libraries ask for it."""

    def __init__(self, kiln, buffer, view):
        self.kiln, self.buffer, self.view = kiln, buffer, view
        self.names = []

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None, max_version=None, **_):
        name = b"dltensor"
        if max_version is not None and max_version[0] >= 1:
            name = b"dltensor_versioned"
        self.names.append(name)
        return self.kiln.capsule(name, self.buffer, self.view)


class OnlyLegacy(Shown):
    def __dlpack__(self, stream=None, **_):
        return super().__dlpack__(stream)


# ---- The header ----

def headers(wheels):
    if wheels:
        place = os.path.join(wheels, "dlpack", "tvm_ffi", "include")
        return [place] if os.path.isdir(place) else []
    found = ["/usr/include", "/usr/local/include"]
    return [one for one in found
            if os.path.exists(os.path.join(one, "dlpack", "dlpack.h"))]


def check_headers(wheels):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    found = headers(wheels) if compiler else []
    for place in found:
        done = subprocess.run(
            [compiler, "-std=c11", "-Wall", "-Werror", "-fsyntax-only",
             "-isystem", place, "-I", os.path.join(ROOT, "include"),
             os.path.join(HERE, "dlpack_header.c")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        print("dlpack.h of %s: %s" % (
            place, "the same" if done.returncode == 0 else done.stdout))
        expect(done.returncode == 0, "the types of %s" % place)
    if not found:
        print("no dlpack.h (Debian: libdlpack-dev)")
    return bool(found)


# ---- NumPy ----

def view_of(code, bits, shape, offset, read_only=0):
    extents = (ctypes.c_int64 * len(shape))(*shape)
    return View(ctypes.sizeof(View), len(shape), Type(code, bits, 1), read_only,
                offset, extents)


def check_shown(kiln, numpy, form):
    """NumPy sees the bytes where they are, and keeps them."""
    deleted = kiln.deleted
    buffer = kiln.buffer()
    host = kiln.host(buffer)
    words = (ctypes.c_float * (BYTES // 4)).from_address(host)
    for i in range(BYTES // 4):
        words[i] = i
    shown = form(kiln, buffer, view_of(2, 32, (3, 5), 64))
    array = numpy.from_dlpack(shown)
    what = "%s %s: " % (form.__name__, shown.names)
    expect(array.shape == (3, 5) and array.dtype == numpy.float32,
           what + "shape and type")
    expect(array.ctypes.data == host + 64, what + "the address")
    expect(array[2, 4] == 16 + 14, what + "an element")
    kiln.lib.kiln_buffer_release(buffer)
    words[16] = 77
    expect(array[0, 0] == 77, what + "the buffer lives on")
    part = array[1:, ::2]
    del array
    gc.collect()
    expect(kiln.deleted == deleted, what + "a part keeps it")
    expect(part[1, 1] == 16 + 12, what + "a part's element")
    del part
    gc.collect()
    expect(kiln.deleted == deleted + 1, what + "deleted once")
    return shown.names


def check_read_only(kiln, numpy):
    """Only with a version can it be said."""
    buffer = kiln.buffer()
    shown = Shown(kiln, buffer, view_of(1, 8, (16,), 0, read_only=1))
    array = numpy.from_dlpack(shown)
    expect(not array.flags.writeable, "read_only: not to be written")
    shown = Shown(kiln, buffer, view_of(1, 8, (16,), 0))
    array = numpy.from_dlpack(shown)
    # NumPy 2.1 and 2.2 take their own arrays for such that only can be read.
    may = numpy.from_dlpack(numpy.zeros(4)).flags.writeable
    expect(array.flags.writeable == may, "without read_only: as NumPy's own")
    if may:
        array[3] = 9
        expect(ctypes.c_uint8.from_address(kiln.host(buffer) + 3).value == 9,
               "what NumPy writes")
    del array
    kiln.lib.kiln_buffer_release(buffer)


def check_taken(kiln, numpy, **asked):
    """Kiln uses NumPy's array where it is, and lets go of it."""
    buffer = kiln.buffer()
    host = kiln.host(buffer)
    raw = (ctypes.c_uint8 * BYTES).from_address(host)
    array = numpy.frombuffer(raw, dtype=numpy.int16)[8:]
    what = "taken %s: " % asked
    before = sys.getrefcount(array)
    taken, text = kiln.taken(array.__dlpack__(**asked))
    expect(text is None, what + str(text))
    if text is None:
        expect(kiln.lib.kiln_buffer_address(taken) == host + 16,
               what + "the address")
        expect(kiln.lib.kiln_buffer_size(taken) == BYTES - 16, what + "the size")
        gc.collect()
        expect(sys.getrefcount(array) == before + 1, what + "the array is kept")
        refused = kiln.refusal("kiln_buffer_fill", ctypes.c_void_p(taken),
                               ctypes.c_uint64(0), ctypes.c_uint64(64),
                               ctypes.c_uint32(0x0102), ctypes.c_uint32(2))
        expect(refused is None, what + str(refused))
        expect(array[31] == 0x0102, what + "what Kiln writes")
        kiln.lib.kiln_buffer_release(taken)
        expect(sys.getrefcount(array) == before, what + "the array is let go")
    # What is refused stays NumPy's, whose capsule deletes it.
    for bad, word in ((array[::2], "contiguous"),
                      (numpy.zeros(4), "does not know the memory")):
        taken, text = kiln.taken(bad.__dlpack__(**asked))
        expect(taken is None and text is not None and word in text,
               what + "refused: " + str(text))
    del bad, array
    kiln.lib.kiln_buffer_release(buffer)


def check_untaken(kiln):
    deleted = kiln.deleted
    buffer = kiln.buffer()
    for name in FORMS:
        capsule = kiln.capsule(name, buffer, view_of(1, 8, (8,), 0))
        del capsule
        gc.collect()
    expect(kiln.deleted == deleted + 2, "capsules that nobody took")
    kiln.lib.kiln_buffer_release(buffer)


def find_numpy(wheels):
    if wheels:
        sys.path.insert(0, os.path.join(wheels, "dlpack"))
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def main():
    args = sys.argv[1:]
    wheels = args[2] if len(args) == 3 and args[1] == "--wheels" else None
    if not args or (len(args) > 1 and not wheels):
        print(__doc__.strip())
        return 2
    if wheels and not os.path.isdir(os.path.join(wheels, "dlpack")):
        print("skipped: tools/wheels.py --dlpack has put nothing into " + wheels)
        return SKIP
    numpy = find_numpy(wheels)
    system = "/usr/bin/python3"
    if numpy is None and not wheels and os.path.exists(system) and (
            "KILN_TEST_AGAIN" not in os.environ):
        # Debian's NumPy belongs to Debian's Python.
        os.environ["KILN_TEST_AGAIN"] = "1"
        sys.stdout.flush()
        os.execv(system, [system, "-B", *sys.argv])
    checked = check_headers(wheels)
    if numpy is not None and not hasattr(numpy, "from_dlpack"):
        numpy = None
    if numpy is None:
        print("no NumPy with from_dlpack (Debian: python3-numpy)")
    else:
        checked = True
        kiln = Kiln(args[0])
        print("NumPy %s" % numpy.__version__)
        names = check_shown(kiln, numpy, Shown)
        check_shown(kiln, numpy, OnlyLegacy)
        check_taken(kiln, numpy)
        if b"dltensor_versioned" in names:
            check_read_only(kiln, numpy)
            check_taken(kiln, numpy, max_version=(1, 0))
        check_untaken(kiln)
        kiln.end()
    if not checked:
        print("skipped: nobody else who speaks DLPack")
        return SKIP
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
