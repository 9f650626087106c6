# For the scripts beside it: $work, an empty folder that is deleted at the end, and how they fail.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATCHBAY_CACHE=$work/cache
unset PATCHBAY_PLUGIN_PATH PATCHBAY_MODEL CXXFLAGS CFLAGS LDFLAGS

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }
expect() { # expect TEXT COMMAND…: it succeeds and prints TEXT
    local text=$1 said
    shift
    said=$("$@" 2>&1) || fail "failed: $*"$'\n'"$said"
    [[ $said == *"$text"* ]] || fail "no '$text' in what $* printed:"$'\n'"$said"
}
refuse() { # refuse TEXT COMMAND…: it fails and says TEXT
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then fail "did not fail: $*"$'\n'"$said"; fi
    [[ $said == *"$text"* ]] || fail "no '$text' in what $* printed:"$'\n'"$said"
}
quietly() { local said; said=$("$@" 2>&1) || fail "failed: $*"$'\n'"$said"; }
install_to() { # install_to BUILD PREFIX: by way of another folder, so that nothing may remember where it was
    quietly cmake --install "$1" --prefix "$work/first"
    mkdir -p "$(dirname "$2")"
    mv "$work/first" "$2"
}
