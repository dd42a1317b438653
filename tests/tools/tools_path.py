# SPDX-License-Identifier: Apache-2.0
"""Lets a test import what lies in tools/ and tests/support/."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
for folder in ("tools", "tests/support"):
    sys.path.insert(0, os.path.join(ROOT, folder))
