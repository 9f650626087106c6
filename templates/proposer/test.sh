#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of proposers, then that it drafts and changes no text. PATCHBAY: the program,
# PATCHBAY_MODEL: a model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --model "$model" --prompt "Once upon a time" \
    --max-tokens 60 --temperature 0 --stats "$@" 2> stats.tmp; }
trap 'rm -f stats.tmp' EXIT
without=$(text)
with=$(text --proposer @name@ --num-speculative-tokens 4)
[ "$with" = "$without" ] || { echo "the text differs from that without drafts" >&2; exit 1; }
grep -q 'accepted' stats.tmp || { echo "it drafted nothing:" >&2; cat stats.tmp >&2; exit 1; }
echo "test.sh: ok"
