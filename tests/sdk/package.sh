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
    share/patchbay/models/demo-draft/config.json share/patchbay/scripts/compare-with-transformers share/patchbay/configs/hardware/h200.yaml \
    share/patchbay/experiments/quickstart/experiment.yaml share/doc/patchbay/docs/plugins.md share/doc/patchbay/LICENSE; do
    [ -f $file ] || fail "the tarball has no $file"
done
if grep -rIlF "$build" lib/cmake share/patchbay; then fail "these name the build tree"; fi
if bin/patchbay plugin list | grep unusable; then fail "unusable plugins"; fi

# pages link to pages, sources and folders that are there
python3 - share/doc/patchbay <<'PYTHON' || fail "dead links"
import pathlib, re, sys

root, pages, links = pathlib.Path(sys.argv[1]), 0, 0
dead = []
for page in list(root.glob("*.md")) + [p for folder in ("docs", "plugins", "experiments") for p in (root / folder).resolve().rglob("*.md")]:
    pages += 1
    at = page.parent
    if "share/patchbay/experiments" in str(at):  # reached by way of the documentation's own folder
        at = root / "experiments" / at.name
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        links += 1
        path = pathlib.Path(*at.parts)
        for part in target.split("/"):  # as a browser resolves it: by name, not by what a link leads to
            path = path.parent if part == ".." else path / part if part not in (".", "") else path
        if not path.exists():
            dead.append(f"{page}: {target}")
print(*dead, sep="\n")
sys.exit(bool(dead) or pages < 100 or links < 500)
PYTHON
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
maintainer=$(dpkg-deb --field "$work"/packages/*.deb Maintainer)
[[ $maintainer == *" <"*@*">" && $maintainer != *localhost* ]] || fail "the maintainer of the .deb is '$maintainer'"
expect "libc6" dpkg-deb --field "$work"/packages/*.deb Depends
echo "package.sh: ok"
