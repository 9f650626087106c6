#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of attention, then a text as by the backend that ships. PATCHBAY: the program,
# PATCHBAY_MODEL: a model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --model "$model" --prompt "Once upon a time" \
    --max-tokens 40 --temperature 0 "$@"; }
[ "$(text --attention @name@)" = "$(text --attention reference)" ] || { echo "the text is another one" >&2; exit 1; }
echo "test.sh: ok"
