#!/usr/bin/env bash
# test.sh [LIBRARY]: the checks of models, then the text of a checkpoint of the same form, under the name of this
# architecture. PATCHBAY: the program, PATCHBAY_MODEL: a folder with a Llama model.
set -euo pipefail
cd "$(dirname "$0")"
library=${1:-@name@.so}
patchbay=${PATCHBAY:-patchbay}
model=${PATCHBAY_MODEL:-@model@}
"$patchbay" plugin test "$library"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$model"/* "$copy/"
chmod -R u+w "$copy"
sed -i 's/"[A-Za-z0-9]*ForCausalLM"/"@Name@ForCausalLM"/' "$copy/config.json"
text() { "$patchbay" generate --plugin-dir "$(dirname "$library")" --prompt "Once upon a time" --max-tokens 40 \
    --temperature 0 "$@"; }
[ "$(text --model "$copy")" = "$(text --model "$model")" ] || { echo "the text is another one" >&2; exit 1; }
echo "test.sh: ok"
