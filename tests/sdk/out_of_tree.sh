#!/usr/bin/env bash
# out_of_tree.sh SOURCE BUILD CC CXX: installs BUILD to an empty prefix, moves that elsewhere, builds plugins against it
# in three ways, and uses them by the installed program alone.
set -euo pipefail
source=$1 build=$2 cc=$3 cxx=$4
source "$(dirname "$0")/lib.sh"

install_to "$build" "$work/prefix"
patchbay=$work/prefix/bin/patchbay
expect "patchbay " "$patchbay" version
expect '"fault": ""' "$patchbay" plugin list --kind scheduler --json
if "$patchbay" plugin list | grep unusable; then fail "an installed plugin is unusable"; fi

# by find_package(patchbay) and add_plugin(), in C++ and in C alone
for plugin in least_work again; do
    cp -r "$source/tests/sdk/$plugin" "$work/$plugin"
    quietly cmake -G Ninja -S "$work/$plugin" -B "$work/$plugin/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
    quietly cmake --build "$work/$plugin/build"
    built=$work/$plugin/build/lib/patchbay/plugins
    [ -f "$built/$plugin.plugin.json" ] || fail "add_plugin() did not probe $plugin"
    expect "$plugin.so: ok" "$patchbay" plugin test "$built/$plugin.so"
    expect "$plugin 1.0.0" "$patchbay" plugin info --plugin-dir "$built" "$plugin"
    quietly cmake --install "$work/$plugin/build" --prefix "$work/prefix"
done
expect "output_cost" "$patchbay" plugin info least_work
expect "proposer again" "$patchbay" plugin info again

# a test by patchbay/testing.hpp, with GoogleTest, by both compilers; it fails where the plugin does something else
for compiler in "$cxx" clang++; do
    command -v "$compiler" > /dev/null || continue
    rm -rf "$work/tested" && mkdir "$work/tested"
    cp -r "$source/tests/sdk/least_work" "$source/tests/sdk/watched" "$work/tested"
    quietly cmake -G Ninja -S "$work/tested/watched" -B "$work/tested/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
    quietly cmake --build "$work/tested/build"
    expect "100% tests passed" ctest --test-dir "$work/tested/build"
    sed -i 's/output_cost_ \* outputs_left/0 * outputs_left/' "$work/tested/least_work/least_work.cpp"
    quietly cmake --build "$work/tested/build"
    refuse "LeastWork.CountsOutputsAndTheWait" "$work/tested/build/test_least_work"
done

# a plugin that breaks its contract does not build, and no manifest vouches for what was linked
cp -r "$source/tests/sdk/least_work" "$work/greedy"
sed -i 's/packer.keep_running.*/for (const pb_sequence\& s : step.running) plan.run(s, 9999);/' "$work/greedy/least_work.cpp"
quietly cmake -G Ninja -S "$work/greedy" -B "$work/greedy/build" -DCMAKE_PREFIX_PATH="$work/prefix"
if said=$(cmake --build "$work/greedy/build" 2>&1); then fail "an overspending plugin was built"; fi
[[ $said == *"refused by scheduler.budget"* ]] || fail "the build did not say why:"$'\n'"$said"
[ ! -e "$work/greedy/build/lib/patchbay/plugins/least_work.plugin.json" ] || fail "the refused plugin has a manifest"

# one that a build may go without is left out, with its reason beside it
sed -i 's/add_plugin(least_work/& KEEP_REFUSED/' "$work/greedy/CMakeLists.txt"
expect "warning: $work/greedy/build/lib/patchbay/plugins/least_work.so: refused" cmake --build "$work/greedy/build"
[ ! -e "$work/greedy/build/lib/patchbay/plugins/least_work.plugin.json" ] || fail "the refused plugin has a manifest"
expect "refused by its probe: scheduler.budget" "$patchbay" plugin list --plugin-dir "$work/greedy/build/lib/patchbay/plugins"
quietly cmake --install "$work/greedy/build" --prefix "$work/elsewhere"

# by one line of the compiler: a plugin in C, and the one that README.md shows
mkdir "$work/plugins" "$work/in_c"
quietly "$cc" -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -I"$work/prefix/include" \
    "$source/tests/sdk/again/again.c" -o "$work/in_c/again.so"
expect "again.so: ok" "$patchbay" plugin test "$work/in_c/again.so"
awk '/^```cpp/ {on = 1; next} /^```/ {if (on) exit} on' "$source/README.md" > "$work/last_in.cpp"
quietly "$cxx" -std=c++20 -O2 -Wall -Wextra -Werror -shared -fPIC -I"$work/prefix/include" "$work/last_in.cpp" -o "$work/plugins/last_in.so"
expect "not probed yet" "$patchbay" plugin list --plugin-dir "$work/plugins"
expect "last_in.so: ok" "$patchbay" plugin test "$work/plugins/last_in.so"
for scheduler in last_in least_work; do
    expect "" "$patchbay" generate --plugin-dir "$work/plugins" --scheduler $scheduler --model "$source/models/demo-draft" \
        --prompt "Once upon" --max-tokens 4
done

# the page that teaches it shows what was built here
awk '/^```cpp/ {on = 1; next} /^```/ {if (on) exit} on' "$source/docs/writing-a-scheduler.md" | diff - "$source/tests/sdk/least_work/least_work.cpp" \
    || fail "docs/writing-a-scheduler.md shows another least_work.cpp"
echo "out_of_tree.sh: ok"
