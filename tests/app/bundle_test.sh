#!/usr/bin/env bash
# The bundle without LibTorch is small enough to carry, needs no newer system than is declared, and its program trains when it
# is told where LibTorch is. Job scripts of a bundle name what starts it in a fresh environment. Needs a portable build.
source tests/lib.sh
checks=$source_folder/tests/app/input_checks.py
said() { sed -n "s/^$1:[A-Z]*=//p" "$CHEXNET_BUILD/CMakeCache.txt"; }
[ -n "$(said CHEXNET_PORTABLE)" ] || { echo "skipped: no portable build (scripts/setup --portable)"; exit 77; }
variant=$(said CHEXNET_CUDA_VARIANT) other=cuda12
[ "$variant" = cuda13 ] || other=cuda13
torch=$(dirname "$(readlink -f "$CHEXNET_BUILD/torch")")
pack() { scripts/bundle --cuda "$variant" --build "$CHEXNET_BUILD" "$@"; }
check "the bundle is small, and no file of it is above the floor" pack "$scratch/bundle.tar.gz"
(umask 077; pack "$scratch/again.tar.gz" >/dev/null)
check "packed again, by someone else, it has the same bytes" cmp "$scratch/bundle.tar.gz" "$scratch/again.tar.gz"
rc=0; scripts/bundle --cuda $other --build "$CHEXNET_BUILD" "$scratch/none.tar.gz" 2>"$scratch/err" || rc=$?
check "a build of the other variant is refused" eval '[ $rc = 1 ] && grep -q "is of variant $variant, not $other" "$scratch/err"'
tar -C "$scratch" -xzf "$scratch/bundle.tar.gz"
inside=$scratch/chexnet-train
bundle=("$inside/run" --torch "$torch")
check "nothing of LibTorch is in it" bash -c "! ls '$inside/lib' | grep -E '^lib(torch|c10)'"
check "it says which variant it is" test "$(cat "$inside/CUDA_VARIANT")" = "$variant"

# docs/install.md has the tables that its files make, and the bill of materials names the same.
sed -n '/^<!-- bundle -->/,/^<!-- end -->/p' docs/install.md | sed '1,2d' | sed '$d' | sed '$d' >"$scratch/documented"
if [ "$variant" = cuda13 ]; then
  check "docs/install.md has its libraries (scripts/install/library_table)" diff "$scratch/documented" "$inside/share/chexnet-train/LIBRARIES.md"
fi
check "each component of the bill of materials is in them, or compiled in" python3 "$checks" bundled_components "$inside/share/chexnet-train/LIBRARIES.md" "$("${bundle[@]}" --version --json)"
cp "$program" "$inside/lib/libsurprise.so"
check "a library that nobody knows is not let in" bash -c "! scripts/install/library_table '$inside' >/dev/null 2>'$scratch/err' && grep -q 'libsurprise.so is in the bundle and not' '$scratch/err'"
rm "$inside/lib/libsurprise.so"

fresh=(env -i PATH=/usr/bin:/bin HOME="$scratch")
check "it trains with the LibTorch that it is given" "${fresh[@]}" "${bundle[@]}" train "$small" --ranks 1 --set train.max_steps=2 --out "$scratch/run"
check "with the C++ library of its own, too" "${fresh[@]}" LD_LIBRARY_PATH="$inside/lib/libstdc++" "${bundle[@]}" train "$small" --ranks 1 --set train.max_steps=2 --out "$scratch/own"
"${bundle[@]}" submit "$small" --dry-run >"$scratch/job.sh" || exit 1
check "its job script names the bundle's script and LibTorch" grep -qxF "program=(${bundle[*]})" "$scratch/job.sh"
check "which starts it in a fresh environment" bash -c "$(grep '^program=' "$scratch/job.sh"); env -i PATH=/usr/bin:/bin \"\${program[@]}\" --version"

# As a centre gives it to its users: LibTorch by a link, the program by the module file.
check "its module file leads to an entry of its own" grep -qxF 'prepend-path PATH $root/entry' "$inside"/share/modulefiles/chexnet-train/*
ln -s "$torch/lib" "$inside/lib/torch"
check "which starts it with the LibTorch of lib/torch" "${fresh[@]}" "$inside/entry/chexnet-train" --version
rm "$inside/lib/torch"

# Without what a GPU run loads: advice that a bundle can follow.
program=$inside/run
export LD_LIBRARY_PATH=$CHEXNET_BUILD/fakes/cuda_driver FAKE_DRIVER=gpus=4
step=(bench step --size 32 --batch 1 --steps 1)
mkdir -p "$scratch/thin/lib"
for library in libtorch libc10 libcaffe2 libcudart libcupti libgomp libnccl; do ln -s "$torch/lib/$library"* "$scratch/thin/lib/"; done
refused 5 "what a GPU run loads comes with a Python's torch for CUDA ${variant#cuda}: run --torch" --torch "$scratch/thin" "${step[@]}"
truncate -s 100000 "$inside/lib/libchexnet_cuda.so" "$inside/lib/libchexnet_mpi.so"
refused 5 "libchexnet_cuda.so: is damaged: its headers speak of" --torch "$torch" "${step[@]}"
unset LD_LIBRARY_PATH FAKE_DRIVER
refused 5 "libchexnet_mpi.so: is damaged: its headers speak of" --torch "$torch" train "$small" --ranks 2 --out "$scratch/two"
finish
