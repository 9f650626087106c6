#!/usr/bin/env bash
# package.sh SOURCE BUILD: the tarball that CPack makes is complete, and works where it is unpacked; the .deb has the same
# files under /usr.
set -euo pipefail
source=$1 build=$2
source "$(dirname "$0")/lib.sh"
quietly cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$work/packages"
mkdir "$work/unpacked"
tar -xzf "$work"/packages/*.tar.gz -C "$work/unpacked" --strip-components=1
cd "$work/unpacked"
for file in bin/patchbay bin/patchbay-probe include/patchbay/abi.h include/patchbay/plugin.hpp \
    lib/cmake/patchbay/patchbayConfig.cmake lib/patchbay/plugins/scheduler-fcfs.plugin.json \
    share/patchbay/templates/attention/plugin.cpp share/patchbay/scripts/report/__main__.py \
    share/patchbay/models/demo-draft/config.json share/patchbay/configs/hardware/h200.yaml \
    share/patchbay/experiments/quickstart/experiment.yaml share/doc/patchbay/plugins.md share/doc/patchbay/LICENSE; do
    [ -f $file ] || fail "the tarball has no $file"
done
if grep -rIlF "$build" lib/cmake share/patchbay; then fail "these name the build tree"; fi
if bin/patchbay plugin list | grep unusable; then fail "unusable plugins"; fi

export PATH=$PWD/bin:$PATH
mkdir "$work/here" && cd "$work/here"
quietly patchbay plugin new proposer mine
expect "mine.so: ok" patchbay plugin build mine/mine.cpp
expect "test.sh: ok" mine/test.sh
quietly patchbay run mine/experiment.yaml --plugin-dir mine --results results --no-report
expect "15 valid runs" python3 -c 'import sqlite3
runs = sqlite3.connect("results/results.sqlite").execute("SELECT count(*) FROM run WHERE valid")
print(runs.fetchone()[0], "valid runs")'

command -v dpkg-shlibdeps > /dev/null || { echo "package.sh: ok, without a .deb: there is no dpkg-shlibdeps"; exit 0; }
quietly cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages"
dpkg-deb --contents "$work"/packages/*.deb > contents.txt
for file in bin/patchbay lib/patchbay/plugins/scheduler-fcfs.so share/patchbay/templates/attention/plugin.cpp; do
    grep -q " \./usr/$file$" contents.txt || fail "the .deb has no /usr/$file"
done
expect "libc6" dpkg-deb --field "$work"/packages/*.deb Depends
echo "package.sh: ok"
