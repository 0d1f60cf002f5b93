#!/usr/bin/env bash
# The bundle without LibTorch is small enough to carry, and its program trains when it is told where LibTorch is. Job scripts of a
# bundle name what starts it in a fresh environment.
source tests/lib.sh
torch=$(cat third_party/.torch-cuda13)
check "the bundle is below 60 MB" scripts/bundle "$scratch/bundle.tar.gz"
(umask 077; scripts/bundle "$scratch/again.tar.gz" >/dev/null)
check "packed again, by someone else, it has the same bytes" cmp "$scratch/bundle.tar.gz" "$scratch/again.tar.gz"
tar -C "$scratch" -xzf "$scratch/bundle.tar.gz"
bundle=("$scratch/chexnet-train/run" --torch "$torch")
check "nothing of LibTorch is in it" bash -c "! ls '$scratch/chexnet-train/lib' | grep -E '^lib(torch|c10)'"
check "it trains with the LibTorch that it is given" env -i PATH=/usr/bin:/bin HOME="$scratch" "${bundle[@]}" train "$small" --ranks 1 --set train.max_steps=2 --out "$scratch/run"
"${bundle[@]}" submit "$small" --dry-run >"$scratch/job.sh" || exit 1
check "its job script names the bundle's script and LibTorch" grep -qxF "program=(${bundle[*]})" "$scratch/job.sh"
check "which starts it in a fresh environment" bash -c "$(grep '^program=' "$scratch/job.sh"); env -i PATH=/usr/bin:/bin \"\${program[@]}\" --version"
finish
