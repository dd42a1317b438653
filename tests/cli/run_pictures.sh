#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the pictures of examples/pictures and compares their pixels.
# run_pictures.sh KILN FOLDER DEVICE
set -eu
examples=$(cd "$(dirname "$0")/../../examples/pictures" && pwd)
rm -rf "$2"
"$examples/run.sh" "$1" "$2" --device "$3"
python3 -B "$examples/check.py" "$2"
