#!/usr/bin/env bash
# Damage, absence and outage while images are read: three kinds with their own exit codes and words. Real errors of
# open and pread (a preloaded library), folders that go away and come back, a pack that is cut off while it is mapped.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
cc -O1 -shared -fPIC tests/support/fail_reads.c -o "$scratch/fail.so" -ldl || fail "the library does not build"
failing() {  # failing AS FROM TIMES COMMAND...: reads of images fail as AS, TIMES times from read number FROM on
  local as=$1 from=$2 times=$3; shift 3
  FAIL_PATH=${failing_path:-/images/} FAIL_AS=$as FAIL_FROM=$from FAIL_TIMES=$times LD_PRELOAD=$scratch/fail.so "$@"
}
says() { if grep -qF -- "$1" "${2:-$scratch/err.txt}"; then echo "ok: $1"; else fail "wanted text: $1"; tail -n 8 "${2:-$scratch/err.txt}"; fi; }
silent() { if grep -qF -- "$1" "${2:-$scratch/err.txt}"; then fail "unwanted text: $1"; else echo "ok: no '$1'"; fi; }

few=(--set train.max_steps=4 --set eval.splits=[] --set data.val_fraction=0 --set checkpoint.every_steps=2)
run() { "$program" train "$small" "${few[@]}" --out "$@" 2>"$scratch/err.txt"; }
check "a run without faults" run "$scratch/clean"
same() { check "$1: the same weights" cmp -s "$(weights "$scratch/clean")" "$(weights "$2")"; }

# Errors that pass.
check "EIO five times" failing EIO 20 5 run "$scratch/eio"
same "EIO" "$scratch/eio"
tar cf "$scratch/set.tar" -C "$phantom" images
export failing_path=set.tar
run "$scratch/stale-index" --set data.images=["$scratch/set.tar"] --set train.max_steps=1  # writes the index
check "a stale handle is opened anew" failing ESTALE 20 1 run "$scratch/stale" --set data.images=["$scratch/set.tar"]
same "ESTALE" "$scratch/stale"
unset failing_path

# Errors that do not.
always=1000000
for corrupt in fail skip; do
  failing EIO 30 $always refused 9 "cannot be read: Input/output error" train "$small" "${few[@]}" --out "$scratch/out-$corrupt" --set data.retry_s=1 --set data.corrupt=$corrupt
  sed -i "s/; resume with: .*//" "$scratch/err.txt"  # which repeats what was said above
  silent "data.corrupt=skip"
  silent "damaged"
done
says "[files] reads have failed for"
failing EIO 30 $always refused 9 "Input/output error" train "$small" "${few[@]}" --out "$scratch/out-2" --set data.retry_s=0.5 --set data.corrupt=skip --ranks 2
silent "no rank could say why"
failing EIO 30 $always refused 9 "Input/output error" inspect "$small" --set data.retry_s=0.2
failing EIO 30 $always refused 9 "Input/output error" pack "$small" --out "$scratch/late.pack" --set data.retry_s=0.2 --set data.corrupt=skip
"$program" pack "$small" --out "$scratch/late.pack" --json 2>/dev/null >"$scratch/json"
check "the pack goes on from where it was" look 'assert a["kept"] > 0 and a["written"] > 0, a' "$scratch/json"

# A folder that goes away while training, for ever and for a while.
long=(--set train.max_steps=100000 --set eval.splits=[] --set data.val_fraction=0 --set data.corrupt=skip)
cp -r "$phantom/images" "$scratch/pictures"
slow_images 200  # the first epoch alone reads them
"${slow[@]}" "$program" train "$small" "${long[@]}" --out "$scratch/gone" --set data.images=["$scratch/pictures"] --set data.retry_s=0.5 2>"$scratch/err.txt" & pid=$!
await_step "$scratch/gone" 2 "$scratch/err.txt"; mv "$scratch/pictures" "$scratch/elsewhere"
wait $pid; rc=$?
[ $rc = 9 ] || fail "a folder that is gone is exit 9, not $rc"
says "was there when the run began, and is gone"
mv "$scratch/elsewhere" "$scratch/pictures"

# At a start, absence; to a run that has seen it, an outage.
seen=("$small" "${few[@]}" --set data.images=["$scratch/pictures"])
resumed=("${seen[@]}" --out "$scratch/resumed" --resume auto)
check "a run that ends in between" "$program" train "${resumed[@]}" --set train.max_steps=2 2>"$scratch/err.txt"
mv "$scratch/pictures" "$scratch/elsewhere"
refused 9 "[resume] was there when the run was started, and is gone: [images] $scratch/pictures: cannot be read: No such file" train "${resumed[@]}"
refused 9 "is gone: [images] $scratch/pictures: cannot be read: No such file" train "${resumed[@]}" --ranks 2
refused 8 "[images] $scratch/none: cannot be read: No such file" train "${resumed[@]}" --set data.images=["$scratch/none"]
mkdir "$scratch/pictures"
refused 9 "is gone: [images] " train "${resumed[@]}"
rmdir "$scratch/pictures"
refused 8 "[images] $scratch/pictures: cannot be read: No such file" train "${seen[@]}" --out "$scratch/first"
CHEXNET_RESTARTS=1 refused 9 "is gone: [images] $scratch/pictures" train "${seen[@]}" --out "$scratch/first"
mv "$scratch/elsewhere" "$scratch/pictures"
check "and goes on once it is back" "$program" train "${resumed[@]}" 2>"$scratch/err.txt"
same "gone between two starts" "$scratch/resumed"

# A pack that is cut off while it is mapped.
cp "$scratch/late.pack" "$scratch/cut.pack"
"$program" train "$small" "${long[@]}" --out "$scratch/cut" --set data.images=["$scratch/cut.pack"] 2>"$scratch/err.txt" & pid=$!
await_step "$scratch/cut" 2 "$scratch/err.txt"; truncate -s 4096 "$scratch/cut.pack"
wait $pid; rc=$?
[ $rc = 9 ] || fail "a pack that is cut off is exit 9, not $rc"
says "[pack] $scratch/cut.pack: was cut off while it was in use"
finish
