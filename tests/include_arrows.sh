#!/usr/bin/env bash
# Includes point one way, src/CMakeLists.txt links what is included, and docs/design.md draws it. What builds without src/tools
# includes nothing of it, and CMake configures a checkout that lacks it. usage: include_arrows.sh [-DOPTION=VALUE...]
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
scripts/include_graph --check || bad=1
fault() { echo "$2"; echo "needed without src/tools: $1"; bad=1; }

# Of src/ that is the matter of arrows. The fuzz targets named here are left out with it.
found=$(grep -rnE --include='*.[ch]pp' '^ *# *include *["<](.*/)?tools/' tests | grep -vE '^tests/(tools/|fuzz/targets/(acceptance|cluster_file|dicom)\.cpp:)')
[ -z "$found" ] || fault 'a header of tools' "$found"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tree/src"
find "$PWD" -mindepth 1 -maxdepth 1 ! -name src ! -name build ! -name .git -exec ln -s -t "$scratch/tree" {} +
find "$PWD/src" -mindepth 1 -maxdepth 1 ! -name tools -exec ln -s -t "$scratch/tree/src" {} +
cmake -S "$scratch/tree" -B "$scratch/build" -G Ninja -DCHEXNET_FUZZ=ON "$@" >"$scratch/log" 2>&1 || fault 'src/tools itself' "$(tail -n 20 "$scratch/log")"
# A library that CMake does not know is left to the linker.
found=$(grep -so -- '-lchexnet_[a-z_]*' "$scratch/build/build.ninja" | sort -u)
[ -z "$found" ] || fault 'a library of tools' "$found"
exit $bad
