#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of samplers, then texts that it makes. PATCHBAY: the program, PATCHBAY_MODEL: a model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --model "$model" --prompt "Once upon a time" \
    --max-tokens 20 "$@"; }
likeliest=$(text --sampler greedy --temperature 0)
[ "$(text --sampler @name@ --temperature 0)" = "$likeliest" ] || { echo "temperature 0 is not greedy" >&2; exit 1; }
drawn=(--sampler @name@ --temperature 1 --seed 7)
[ "$(text "${drawn[@]}")" = "$(text "${drawn[@]}")" ] || { echo "a seed does not give a text again" >&2; exit 1; }
printf 'model: "%s"\nsampler: {plugin: @name@, floor: 1}\n' "$model" > floor.tmp.yaml
trap 'rm -f floor.tmp.yaml' EXIT
[ "$(text --config floor.tmp.yaml --temperature 1)" = "$likeliest" ] ||
    { echo "a floor of 1 leaves more than the likeliest token" >&2; exit 1; }
echo "test.sh: ok"
