# SPDX-License-Identifier: Apache-2.0
"""The version of the NVRTC that this package was linked with."""

import ctypes
import os

_native = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "native.so"))


def version():
    """(major, minor)"""
    encoded = _native.nvrtc_version_encoded()
    return encoded // 1000, encoded % 1000 // 10
