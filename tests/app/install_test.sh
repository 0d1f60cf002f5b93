#!/usr/bin/env bash
# A program that cmake --install installs works for every user; the bundle's starter never searches the working folder for
# libraries.
source tests/lib.sh
prefix=$scratch/apps
chmod 711 "$scratch"
(umask 077; cmake --install "$CHEXNET_BUILD" --prefix "$prefix" >"$scratch/out" 2>"$scratch/err"); rc=$?
check "installs" [ $rc = 0 ]
check "all of it can be read by everybody" test -z "$(find "$prefix" -not -type l \( -type d -not -perm -005 -o -type f -not -perm -004 \))"
check "and run" test -z "$(find "$prefix/bin" -type f -not -perm -001)"
# bundle_test compares the whole of it where a portable build is.
rows=$(awk -F '|' '$1 == "host" || $1 == "torch" {gsub(/, /, "`, `", $2); printf "| `%s` | %s | %s |\n", $2, $3, $4}' third_party/bundled.txt)
check "docs/install.md has the libraries of third_party/bundled.txt" test -z "$(grep -vxFf docs/install.md <<<"$rows")"
# What a bundle and the package chexnet-train hold. The converter has a separate package: two with one file cannot be installed.
cmake --install "$CHEXNET_BUILD" --component Unspecified --prefix "$scratch/component" >/dev/null 2>&1
check "the program's own part is without the DICOM converter" test -x "$scratch/component/bin/chexnet-train" -a ! -e "$scratch/component/bin/chexnet-dicom"
library_path() { readelf -d "$1" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p'; }
sides=(libchexnet_mpi.so); [ ! -e "$CHEXNET_BUILD/libchexnet_mpich.so" ] || sides+=(libchexnet_mpich.so)
for file in "$CHEXNET_BUILD"/{chexnet-train,libchexnet_cuda.so} "${sides[@]/#/$CHEXNET_BUILD/}" "$prefix"/bin/chexnet-train "${sides[@]/#/$prefix/lib/}"; do
  check "${file##*/} looks for libraries in folders of its own" bash -c "tr : '\n' <<<'$(library_path "$file")' | grep -qv '^.ORIGIN' && exit 1 || [ -n '$(library_path "$file")' ]"
done
check "installed pages find the page on security" test -e "$prefix/share/chexnet-train/docs/../SECURITY.md"
check "completion is whole" grep -q chexnet "$prefix/share/bash-completion/completions/chexnet-train"
if command -v help2man >/dev/null; then
  check "the man page has the commands" test "$(grep -cE '^(train|predict|status)$' "$prefix/share/man/man1/chexnet-train.1")" = 3
else
  echo "skipped: the man page (no help2man)"
fi
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  torch=$(readlink -f "$prefix/lib/torch")
  cat >"$scratch/as_other" <<SH2
rm "$prefix/lib/torch" && mkdir "$prefix/lib/torch" && mount --bind "$torch" "$prefix/lib/torch"
cd / && exec env -i setpriv --reuid=65534 --regid=65534 --clear-groups "$prefix/bin/chexnet-train" --version
SH2
  check "another user runs it where LibTorch can be read" bash -c "unshare -m bash '$scratch/as_other' >/dev/null"
else
  echo "skipped: another user (not root, or no mounts of our own)"
fi

# lib/torch: a link with a warning where others cannot follow it, or a copy.
mkdir -p "$scratch/open/torch" "$scratch/closed/torch"; chmod 700 "$scratch/closed"
for place in open closed; do echo library >"$scratch/$place/torch/libtorch.so.1"; ln -s libtorch.so.1 "$scratch/$place/torch/libtorch.so"; done
place_torch() { mkdir -p "$scratch/p-$1-$2/lib"; (umask 077; cmake -Dtorch="$scratch/$1/torch" -Dcopy_torch="$2" -Dbuild=/b/release -DCMAKE_INSTALL_PREFIX="$scratch/p-$1-$2" -P scripts/install/torch.cmake) >"$scratch/out" 2>"$scratch/err"; }
chmod 755 "$scratch"; parent=$(dirname "$scratch")
place_torch open OFF
if [ "$(stat -c %A "$parent" | grep -c '[xt]$')" = 1 ]; then check "a link that everybody can follow" test "$(readlink "$scratch/p-open-OFF/lib/torch")" = "$scratch/open/torch" -a ! -s "$scratch/err"; fi
place_torch closed OFF
check "a link into a folder of one user is warned of" bash -c "tr -s ' \n' ' ' <'$scratch/err' | grep -q 'leads into $scratch/closed, which other users may not enter'"
check "with the commands that copy it" bash -c "grep -qx '  *cmake -DCHEXNET_INSTALL_TORCH=ON /b/release' '$scratch/err' && grep -qx '  *cmake --install /b/release --prefix $scratch/p-closed-OFF' '$scratch/err'"
place_torch closed ON
check "a copy of the libraries" bash -c "cmp -s '$scratch/closed/torch/libtorch.so.1' '$scratch/p-closed-ON/lib/torch/libtorch.so' && [ ! -s '$scratch/err' ]"
check "for everybody" test "$(stat -c %a "$scratch/p-closed-ON/lib/torch"{,/libtorch.so.1} | grep -c '[4-7]$')" = 2

# The module file.
init=$(ls /usr/share/modules/init/bash /usr/share/lmod/lmod/init/bash 2>/dev/null | head -n 1)
if [ -n "$init" ]; then
  for before in none /a/man:/b/man; do
    said=$(bash -c 'source "$0"; if [ "$2" = none ]; then unset MANPATH; else export MANPATH=$2; fi
      module use "$1/share/modulefiles"; module load chexnet-train; echo "$MANPATH|$CHEXNET_ROOT|$(command -v chexnet-train)"' "$init" "$prefix" "$before" 2>&1)
    check "module load, MANPATH $before: other man pages stay" test "${said%%|*}" = "$prefix/share/man:$([ "$before" = none ] || echo "$before:")"
    check "and the program is found" test "${said#*|}" = "$prefix|$prefix/bin/chexnet-train"
  done
  for before in none /a:/usr/share; do
    mapfile -t said < <(bash -c 'source "$0"; if [ "$2" = none ]; then unset XDG_DATA_DIRS; else export XDG_DATA_DIRS=$2; fi
      module use "$1/share/modulefiles"; module load chexnet-train; echo "$XDG_DATA_DIRS"; module unload chexnet-train; echo "${XDG_DATA_DIRS-none}"' "$init" "$prefix" "$before" 2>&1)
    folders=:${said[0]}:
    check "module load, XDG_DATA_DIRS $before: bash finds our completion" [ "${folders%%"$prefix/share:"*}" = : ]
    check "and those of the system" grep -q ':/usr/local/share:.*:/usr/share:\|:/usr/share:.*:/usr/local/share:' <<<"${folders//:/::}"
    check "unload leaves $before" [ "${said[1]}" = "$before" ]
  done
else
  echo "skipped: module file (no Environment Modules or Lmod)"
fi

# The bundle's starter.
bundle=$scratch/bundle
mkdir -p "$bundle/bin" "$bundle/lib/torch" "$bundle/lib/libstdc++" "$scratch/LibTorch/lib" "$scratch"/{older,newer,bin}
install -m 755 scripts/install/run "$bundle/run"
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"\n' >"$bundle/bin/chexnet-train"; chmod 755 "$bundle/bin/chexnet-train"
echo 2.11.0 >"$bundle/TORCH_VERSION"; echo cuda13 >"$bundle/CUDA_VARIANT"
printf 'GLIBC 2.28\nGLIBCXX 3.4.30\n' >"$bundle/FLOOR"
printf '\x7fELF' | tee "$bundle/lib/torch/libtorch_cpu.so" "$scratch/LibTorch/lib/libtorch_cpu.so" >"$bundle/lib/libstdc++/libstdc++.so.6"
printf 'GLIBCXX_3.4.29\n' >"$scratch/older/libstdc++.so.6"; printf 'GLIBCXX_3.4.29\nGLIBCXX_3.4.30\n' >"$scratch/newer/libstdc++.so.6"
start() { env -u LD_LIBRARY_PATH "$@" 2>"$scratch/err"; }
if grep -q GLIBCXX_3.4.30 /usr/lib/x86_64-linux-gnu/libstdc++.so.6 2>/dev/null; then
  check "LibTorch of the bundle" test -z "$(start "$bundle/run")"
  check "and libraries of the site" test "$(start LD_LIBRARY_PATH=/a "$bundle/run")" = "/a"
  check "an empty LD_LIBRARY_PATH" test -z "$(start LD_LIBRARY_PATH='' "$bundle/run")"
  check "another LibTorch" test "$(start LD_LIBRARY_PATH=/a "$bundle/run" --torch "$scratch/LibTorch")" = "$scratch/LibTorch/lib:/a"
  check "named from where one stands" test "$(cd "$scratch" && start "$bundle/run" --torch LibTorch)" = "$scratch/LibTorch/lib"
fi
check "a C++ library that is too old is passed over" test "$(start LD_LIBRARY_PATH="$scratch/older" "$bundle/run")" = "$bundle/lib/libstdc++:$scratch/older"
check "one that is new enough is taken" test "$(start LD_LIBRARY_PATH="$scratch/newer:/a" "$bundle/run")" = "$scratch/newer:/a"
not_started() {  # not_started CODE PART ARGUMENTS...: of the bundle's starter
  local code=$1 part=$2 rc=0; shift 2
  start "$bundle/run" "$@" >/dev/null || rc=$?
  check "$part" eval '[ $rc = $code ] && grep -qF -- "$part" "$scratch/err"'
}
check "--torch=DIR is --torch DIR" test "$(start LD_LIBRARY_PATH="$scratch/newer" "$bundle/run" --torch="$scratch/LibTorch")" = "$scratch/LibTorch/lib:$scratch/newer"
not_started 2 "run: --torch: is empty. Hint: --torch /path/to/LibTorch-2.11.0" --torch "" bench step
not_started 2 "run: --torch: is empty. Hint: --torch /path/to/LibTorch-2.11.0," --torch= bench step
not_started 2 "run: --torch: is empty. Hint: --torch /path/to/LibTorch-2.11.0, or" --torch
torch_of() { echo "__version__ = '$1'" >"$scratch/LibTorch/version.py"; }
torch_of 2.11.0+cu130
check "a LibTorch of the same CUDA version" test "$(start LD_LIBRARY_PATH="$scratch/newer" "$bundle/run" --torch "$scratch/LibTorch")" = "$scratch/LibTorch/lib:$scratch/newer"
mv "$bundle/lib/torch" "$bundle/lib/torch-of-the-bundle"; ln -s "$scratch/LibTorch/lib" "$bundle/lib/torch"; ln -s "$bundle/run" "$scratch/bin/entry"
check "one that lib/torch leads to, for all users" test "$(start LD_LIBRARY_PATH="$scratch/newer" "$scratch/bin/entry")" = "$scratch/LibTorch/lib:$scratch/newer"
torch_of 2.10.0+cu130
not_started 2 "this build needs LibTorch 2.11.0 exactly, $scratch/LibTorch is 2.10.0+cu130"
rm "$bundle/lib/torch"
not_started 2 "for all users ln -s /path/to/LibTorch/lib $bundle/lib/torch"
ln -s "$scratch/nowhere/lib" "$bundle/lib/torch"
not_started 2 "$scratch/nowhere/lib/libtorch_cpu.so is not there"
rm "$bundle/lib/torch"; mv "$bundle/lib/torch-of-the-bundle" "$bundle/lib/torch"
torch_of 2.11.0+cu126
not_started 2 "this build is for CUDA 13, $scratch/LibTorch is for CUDA 12" --torch "$scratch/LibTorch"
torch_of 2.10.0+cu130
not_started 2 "this build needs LibTorch 2.11.0 exactly, $scratch/LibTorch is 2.10.0+cu130" --torch "$scratch/LibTorch"
torch_of 2.11.0+cpu
not_started 0 "is a LibTorch for CPUs: GPUs are out of reach" --torch "$scratch/LibTorch"
rm "$scratch/LibTorch/version.py"; echo 2.11.0+cu126 >"$scratch/LibTorch/build-version"
not_started 2 "this build is for CUDA 13, $scratch/LibTorch is for CUDA 12" --torch "$scratch/LibTorch"
rm "$scratch/LibTorch/build-version"; echo ...libcudart.so.12... >"$scratch/LibTorch/lib/libtorch_cuda.so"
not_started 2 "this build is for CUDA 13, $scratch/LibTorch is for CUDA 12" --torch "$scratch/LibTorch"
: >"$scratch/LibTorch/lib/libtorch_cpu.so"
not_started 2 "libtorch_cpu.so cannot be read, or is no library" --torch "$scratch/LibTorch"
if [ "$(id -u)" = 0 ]; then
  printf '\x7fELF' >"$scratch/LibTorch/lib/libtorch_cpu.so"; chmod 600 "$scratch/LibTorch/lib/libtorch_cpu.so"
  rc=0; setpriv --reuid=65534 --regid=65534 --clear-groups "$bundle/run" --torch "$scratch/LibTorch" 2>"$scratch/err" || rc=$?
  check "one that this user may not read is refused" eval '[ $rc = 2 ] && grep -qF "cannot be read" "$scratch/err"'
  chmod 700 "$scratch/LibTorch"
  rc=0; setpriv --reuid=65534 --regid=65534 --clear-groups "$bundle/run" --torch "$scratch/LibTorch" 2>"$scratch/err" || rc=$?
  check "and one below a folder that this user may not enter" eval '[ $rc = 2 ] && grep -qF "may not be entered" "$scratch/err"'
fi
printf '#!/bin/sh\necho glibc 2.17\n' >"$scratch/bin/getconf"; chmod 755 "$scratch/bin/getconf"
PATH=$scratch/bin:$PATH not_started 5 "this machine has glibc 2.17, the bundle needs 2.28 or newer"
finish
