#!/usr/bin/env bash
# What cmake --install puts down runs for every user; the bundle's starter never searches the working folder for libraries.
source tests/lib.sh
prefix=$scratch/apps
chmod 711 "$scratch"
(umask 077; cmake --install "$CHEXNET_BUILD" --prefix "$prefix" >"$scratch/out" 2>"$scratch/err"); rc=$?
check "installs" [ $rc = 0 ]
check "all of it can be read by everybody" test -z "$(find "$prefix" -not -type l \( -type d -not -perm -005 -o -type f -not -perm -004 \))"
check "and run" test -z "$(find "$prefix/bin" -type f -not -perm -001)"
library_path() { readelf -d "$1" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p'; }
sides=(libchexnet_mpi.so); [ ! -e "$CHEXNET_BUILD/libchexnet_mpich.so" ] || sides+=(libchexnet_mpich.so)
for file in "$CHEXNET_BUILD"/{chexnet-train,libchexnet_cuda.so} "${sides[@]/#/$CHEXNET_BUILD/}" "$prefix"/bin/chexnet-train "${sides[@]/#/$prefix/lib/}"; do
  check "${file##*/} looks for libraries in folders of its own" bash -c "tr : '\n' <<<'$(library_path "$file")' | grep -qv '^.ORIGIN' && exit 1 || [ -n '$(library_path "$file")' ]"
done
check "man page and completion are whole" bash -c "grep -q chexnet '$prefix/share/man/man1/chexnet-train.1' && grep -q chexnet '$prefix/share/bash-completion/completions/chexnet-train'"
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
place_torch() { mkdir -p "$scratch/p-$1-$2/lib"; (umask 077; cmake -Dtorch="$scratch/$1/torch" -Dcopy_torch="$2" -DCMAKE_INSTALL_PREFIX="$scratch/p-$1-$2" -P scripts/install/torch.cmake) >"$scratch/out" 2>"$scratch/err"; }
chmod 755 "$scratch"; parent=$(dirname "$scratch")
place_torch open OFF
if [ "$(stat -c %A "$parent" | grep -c '[xt]$')" = 1 ]; then check "a link that everybody can follow" test "$(readlink "$scratch/p-open-OFF/lib/torch")" = "$scratch/open/torch" -a ! -s "$scratch/err"; fi
place_torch closed OFF
check "a link into a folder of one user is warned of" bash -c "tr -s ' \n' ' ' <'$scratch/err' | grep -q 'leads into $scratch/closed, which other users may not enter'"
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
else
  echo "skipped: module file (no Environment Modules or Lmod)"
fi

# The bundle's starter.
bundle=$scratch/bundle
mkdir -p "$bundle/bin" "$bundle/lib/torch" "$scratch/LibTorch/lib"
install -m 755 scripts/install/run "$bundle/run"
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"\n' >"$bundle/bin/chexnet-train"; chmod 755 "$bundle/bin/chexnet-train"
echo 2.11.0 >"$bundle/TORCH_VERSION"; : >"$bundle/lib/torch/libtorch_cpu.so"; : >"$scratch/LibTorch/lib/libtorch_cpu.so"
check "LibTorch of the bundle" test "$(env -u LD_LIBRARY_PATH "$bundle/run")" = "$bundle/lib"
check "and libraries of the site" test "$(LD_LIBRARY_PATH=/a "$bundle/run")" = "/a:$bundle/lib"
check "an empty LD_LIBRARY_PATH" test "$(LD_LIBRARY_PATH='' "$bundle/run")" = "$bundle/lib"
check "another LibTorch" test "$(LD_LIBRARY_PATH=/a "$bundle/run" --torch "$scratch/LibTorch")" = "$scratch/LibTorch/lib:/a:$bundle/lib"
check "named from where one stands" test "$(cd "$scratch" && env -u LD_LIBRARY_PATH "$bundle/run" --torch LibTorch)" = "$scratch/LibTorch/lib:$bundle/lib"
finish
