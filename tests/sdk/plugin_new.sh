#!/usr/bin/env bash
# plugin_new.sh SOURCE BUILD CC CXX: installs BUILD to an empty prefix; from there `patchbay plugin new` of every kind and
# language, built by `plugin build` and by CMake, tested, and run in an experiment.
set -euo pipefail
source=$1 build=$2
export CC=$3 CXX=$4
source "$(dirname "$0")/lib.sh"
install_to "$build" "$work/prefix"
export PATH=$work/prefix/bin:$PATH
export CFLAGS=-Werror CXXFLAGS=-Werror
mkdir "$work/here" && cd "$work/here"

says_build() { # says_build PATTERN MANIFEST
    grep -qxE "  \"build\": \"$1\"," "$2" || fail "no build as $1 in $2:"$'\n'"$(grep '"build"' "$2")"
}

for folder in "$source"/templates/*/; do
    kind=$(basename "$folder")
    [ "$kind" = all ] && continue
    refuse "expected " patchbay plugin new none mine
    refuse "$kind" patchbay plugin new none mine
    for template in "$folder"plugin.*; do
        language=${template##*.}
        name=my_${kind}_$language
        expect "next: patchbay plugin build $name/$name.$language" \
            patchbay plugin new "$kind" "$name" --lang "$language"
        if grep -rnE '@[A-Za-z_]+@' "$name"; then fail "a word of the template of $kind is left"; fi
        expect "$name.so: ok" patchbay plugin build "$name/$name.$language"
        says_build '.*/O2' "$name/$name.plugin.json"
        exported=$(nm -D --defined-only "$name/$name.so" | awk '{print $3}')
        [ "$exported" = pb_plugin_v1 ] || fail "$name.so exports: $exported"
        expect "$name.so: ok" patchbay plugin test "$name/$name.so"
        expect "$kind $name 0.1.0" patchbay plugin info "$name" --plugin-dir "$name"
        expect "test.sh: ok" "$name/test.sh"
        if command -v clang++ > /dev/null; then
            expect "$name.so: ok" env CC=clang CXX=clang++ patchbay plugin build "$name/$name.$language" -o by_clang
        fi
        # by CMake, which runs the same test
        quietly cmake -G Ninja -S "$name" -B "$name/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug
        quietly cmake --build "$name/build"
        says_build '[A-Za-z]+-[0-9.]+/Debug' "$name/build/lib/patchbay/plugins/$name.plugin.json"
        expect "0 tests failed out of 2" ctest --test-dir "$name/build"
        [ ! -f "$name/experiment.yaml" ] || (cd "$name" &&
            expect "$name" patchbay run experiment.yaml --plugin-dir . --results results --no-report)
    done
done

# the flags that count are recorded, and what CMake builds without a word is optimised; a folder may be called as a kind
expect "ok" env CXXFLAGS="-g -O1" patchbay plugin build my_scheduler_cpp/my_scheduler_cpp.cpp -o flags
says_build '.*/O1' flags/my_scheduler_cpp.plugin.json
patchbay plugin new scheduler mine --dir scheduler/mine > said.txt
quietly cmake -G Ninja -S scheduler/mine -B scheduler/build -DCMAKE_PREFIX_PATH="$work/prefix"
quietly cmake --build scheduler/build
says_build '.*/Release' scheduler/build/lib/patchbay/plugins/mine.plugin.json
expect "0 tests failed out of 2" ctest --test-dir scheduler/build

# what they are for: an author's slip is found, by the compiler or by the checks
patchbay plugin new scheduler slip > said.txt
sed -i 's/void plan(const/void plam(const/' slip/slip.cpp
refuse "slip/slip.cpp: $CXX ended with status" patchbay plugin build slip/slip.cpp
[ ! -e slip/slip.so ] || fail "a library of what does not compile"
sed -i 's/void plam(const/void plan(const/; s/packer.keep_running.*/for (const auto\& s : step.running) plan.run(s, 9999);/' \
    slip/slip.cpp
refuse "refused by scheduler.budget" patchbay plugin build slip/slip.cpp -o elsewhere/deep
[ -f elsewhere/deep/slip.so ] || fail "no library in the folder that was named"
[ ! -e elsewhere/deep/slip.plugin.json ] || fail "a manifest of what was refused"
refuse "slip is there already" patchbay plugin new scheduler slip
CXX="no-such-compiler -x" refuse "\$CXX is 'no-such-compiler -x', which does not run" patchbay plugin build slip/slip.cpp
echo "plugin_new.sh: ok"
