#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the pictures of examples/pictures and compares their pixels.
# run_pictures.sh KILN FOLDER DEVICE [graph]: with the last, by one graph.
set -eu
examples=$(cd "$(dirname "$0")/../../examples/pictures" && pwd)
rm -rf "$2"
if [ "${4:-}" = graph ]; then
  mkdir -p "$2"
  "$1" graph "$examples/pictures.graph" --device "$3" --runs 0 \
    --out gray="$2/gray.png" --out blurred="$2/blurred.png" \
    --out edges="$2/edges.png" --out nothing="$2/mandelbrot.png"
else
  "$examples/run.sh" "$1" "$2" --device "$3"
fi
python3 -B "$examples/check.py" "$2"
