#!/usr/bin/env bash
# tutorial.sh SOURCE BUILD CC CXX: the commands of the tutorial in docs/plugins.md, as they stand there, in an empty home,
# while requests are in flight.
set -euo pipefail
source=$1 build=$2
export CC=$3 CXX=$4
source "$(dirname "$0")/lib.sh"
export HOME=$work/home XDG_RUNTIME_DIR=$work
unset PATCHBAY_API_KEY
install_to "$build" "$HOME/patchbay"
export PATH=$HOME/patchbay/bin:$PATH
mkdir "$HOME/plugins" && cd "$HOME/plugins"

mapfile -t commands < <(awk '/^## From nothing/ {here = 1} here && /^```sh/ {on = 1; next} /^```/ {if (on) exit} on' \
    "$source/docs/plugins.md")
[ ${#commands[@]} -ge 3 ] && [ ${#commands[@]} -le 6 ] || fail "the tutorial has ${#commands[@]} commands, expected 3 to 6"

server= load=
stop() {
    [ -z "$load" ] || kill "$load" 2> /dev/null || true
    [ -z "$server" ] || { kill -KILL "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; }
    rm -rf "$work"
}
trap stop EXIT
in_time() { # in_time WHAT COMMAND…: again and again until it succeeds
    local what=$1 end=$((SECONDS + 120))
    shift
    until "$@" > "$work/tried.txt" 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what: not within two minutes:"$'\n'"$(cat "$work/tried.txt" "$work"/said.*)"
    done
}
status_has() { patchbay status > "$work/status.txt" 2>&1 && cat "$work/status.txt" && grep -Eq "$1" "$work/status.txt"; }
complete() { # one request
    curl --silent --show-error --fail "$url/v1/completions" -d '{"prompt": "Once upon a time", "max_tokens": 64}'
}
keep_asking() { while :; do complete > answer.part 2> curl.txt && mv answer.part answer.json || cat curl.txt >> failures.txt; done; }

for i in "${!commands[@]}"; do
    command=${commands[$i]} said=$work/said.$i
    [[ $command == "patchbay swap"* ]] && in_time "an answer" test -s answer.json
    if [[ $command == *" &" ]]; then # what stays in the background here: its id is the shell's $!
        eval "${command% &} > '$said' 2>&1 &"
        server=$!
        in_time "the engine" status_has "running"
        url=$(grep -oE 'http://[0-9.]+:[0-9]+' "$said" | head -1)
        [ -n "$url" ] || fail "'$command' does not say where it serves: $(cat "$said")"
        keep_asking & load=$!
    else
        eval "$command" > "$said" 2>&1 || fail "'$command' failed:"$'\n'"$(cat "$said")"
    fi
done
last=$(cat "$said")
[[ $last =~ ^"swap scheduler fcfs→mine: "(committed|"on probation") ]] || fail "the last command said: $last"
grep -q "^added: scheduler" "$work"/said.* || fail "no reload found the new plugin"
in_time "the swap" status_has '^scheduler +fcfs +mine +committed'
status_has '^scheduler +mine ' > /dev/null || fail "the scheduler is another one"
complete | grep -q '"text"' || fail "no text after the swap"
[ ! -e failures.txt ] || fail "requests failed while the tutorial ran: $(head -3 failures.txt)"
echo "tutorial.sh: ok"
