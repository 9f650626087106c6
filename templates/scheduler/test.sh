#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of schedulers, then the order that this one promises. PATCHBAY: the program.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
"$patchbay" plugin test "$library"
"$patchbay" scenario run --plugin-dir "$(dirname "$library")" order.yaml
echo "test.sh: ok"
