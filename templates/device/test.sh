#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of devices, then a text as by the device that computes, and a refusal where memory is
# too little. PATCHBAY: the program, PATCHBAY_MODEL: a model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --model "$model" --prompt "Once upon a time" \
    --max-tokens 40 --temperature 0 "$@"; }
[ "$(text --device @name@)" = "$(text --device cpu)" ] || { echo "the text is another one" >&2; exit 1; }
printf 'model: "%s"\ndevice: {plugin: @name@, memory_mib: 1}\n' "$model" > small.tmp.yaml
trap 'rm -f small.tmp.yaml' EXIT
if text --config small.tmp.yaml 2> /dev/null; then echo "a model fits into 1 MiB" >&2; exit 1; fi
echo "test.sh: ok"
