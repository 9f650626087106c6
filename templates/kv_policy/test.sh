#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of KV policies, then that it changes no text where pages are evicted. PATCHBAY: the
# program, PATCHBAY_MODEL: a model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

config() {
    printf 'model: "%s"\nengine: {num_blocks: 8, max_model_len: 96, max_num_seqs: 1}\nkv_policy: %s\n' "$model" "$1"
}
trap 'rm -f one.tmp.yaml other.tmp.yaml' EXIT
config none > one.tmp.yaml
config @name@ > other.tmp.yaml
text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --temperature 0 --max-tokens 40 --config "$1" \
    --prompt "Once upon a time" --prompt "The king said" --prompt "Once upon a time there"; }
[ "$(text other.tmp.yaml)" = "$(text one.tmp.yaml)" ] || { echo "the text is another one" >&2; exit 1; }
echo "test.sh: ok"
