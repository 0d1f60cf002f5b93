#!/usr/bin/env bash
# A run in which no rank moves is named and ended, whatever blocks it: MPI in the midst of backward, or the storage of a rank
# alone. (A GPU: tests/fakegpu/gpu_failure_test.sh.)
source tests/lib.sh
command -v mpicc >/dev/null || { echo "skipped: no mpicc"; exit 77; }
mpicc -shared -fPIC -O1 -o "$scratch/hang.so" tests/support/hang_mpi.c -ldl || exit 1
cc -shared -fPIC -O1 -o "$scratch/slow.so" tests/support/slow_reads.c -ldl || exit 1
cc -shared -fPIC -O1 -o "$scratch/clock.so" tests/support/fast_clock.c -ldl || exit 1
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set train.max_steps=6 --set launch.timeout_s=4)
named() {  # named LOG PATTERN: by the last line of the run
  tail -n 1 "$1" | grep -qE "$2"
}

LD_PRELOAD="$scratch/hang.so" timeout 120 "$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/mpi" >"$scratch/log" 2>&1
rc=$?
check "MPI_Test that never returns ends the run (exit $rc)" [ $rc = 7 ]
check "and all ranks are named with their phase" named "$scratch/log" \
  "Ranks 0, 1, first on .* have been in backward of step 1 .* for 4\.[0-9] s, and no rank has moved since .*resume with: "
[ $rc = 7 ] || tail -n 5 "$scratch/log"

SLOW_NAME=.png SLOW_MS=100000 LD_PRELOAD="$scratch/slow.so" timeout 120 "$program" train "$small" "${quick[@]}" --set data.val_fraction=0 --ranks 1 \
  --out "$scratch/alone" >"$scratch/log" 2>&1
rc=$?
check "storage that does not answer a rank alone ends it (exit $rc)" [ $rc = 7 ]
check "and is named" named "$scratch/log" "Rank 0 on .* has been in waiting for data of step 1 .* for 4\.[0-9] s, and no rank has moved since"
check "with a post-mortem" grep -q '"cause": "stuck"' "$scratch/alone/postmortem.json"
[ $rc = 7 ] || tail -n 5 "$scratch/log"

# Nor without a watchdog, beside each other.
shared_run plain "$scratch/model" || exit 1
declare -A job
declare -A said
hangs() {  # hangs NAME FILES SAID COMMAND...: no read of FILES, nor a folder of that name, comes to an end; the last line has SAID
  said[$1]=$3
  SLOW_NAME=$2 SLOW_MS=1000000 LD_PRELOAD="$scratch/slow.so" timeout -k 5 120 "$program" "${@:4}" --set launch.timeout_s=4 >"$scratch/$1.log" 2>&1 & job[$1]=$!
}
hangs_in_mpi() {  # hangs_in_mpi NAME CALL FROM COMMAND...: that call of MPI does not return from then on
  said[$1]=$'error: .mpi. rank [01] on .* a call of MPI did not return in 4 s'
  HANG_CALL=$2 HANG_FROM=$3 LD_PRELOAD=$scratch/hang.so timeout -k 5 120 "$program" "${@:4}" --ranks 2 --set launch.timeout_s=4 >"$scratch/$1.log" 2>&1 & job[$1]=$!
}
hangs_by_default() {  # the same of a command that has no --set: after ten minutes of a clock that hurries
  said[$1]=$3
  CLOCK_FACTOR=10 SLOW_NAME=$2 SLOW_MS=1000000 LD_PRELOAD="$scratch/slow.so:$scratch/clock.so" timeout -k 5 300 "$program" "${@:4}" >"$scratch/$1.log" 2>&1 & job[$1]=$!
}
picture=$phantom/images/00000001_000.png
scoring='error: .images. no batch of the evaluation came on .* for 4 s'
hangs evaluate .png "$scoring" evaluate "$scratch/model" --split test
hangs ranks .png "$scoring" evaluate "$scratch/model" --split test --ranks 2
hangs predict .png "$scoring" predict "$scratch/model" "$picture"
hangs pack .png 'error: .*packing made no progress for 4 s' pack "$small" --out "$scratch/x.pack"
hangs_in_mpi started MPI_Test 6 train "$small" --out "$scratch/started"  # before there is a run folder
hangs_in_mpi scores MPI_Test 40 evaluate "$scratch/model" --split test
hangs_in_mpi barrier MPI_Ibarrier 1 pack "$small" --out "$scratch/y.pack"
late='took more than 4 s on .* does the storage answer'
model=".storage. reading the model.* $late"
hangs config small.yaml ".storage. reading the config and looking at what is to be written $late" train "$small" --out "$scratch/config"
hangs folder held/log ".storage. taking the run folder $scratch/held $late" train "$small" --out "$scratch/held"
hangs table .csv 'finding the images made no progress for 4 s' train "$small" --out "$scratch/table"
hangs model model.safetensors "$model" evaluate "$scratch/model" --split test
hangs weights model.safetensors "$model" predict "$scratch/model" "$picture"
hangs predictions .csv "$model" evaluate --predictions "$phantom/Data_Entry_2017.csv"
hangs inspect .png 'error: .*inspecting the images made no progress for 4 s' inspect "$small"
late='took more than 600 s on .* does the storage answer'
hangs_by_default export model.safetensors ".storage. exporting $scratch/model $late" export "$scratch/model" --out "$scratch/exported"
hangs_by_default status metrics.jsonl ".storage. reading $scratch/model $late" status "$scratch/model"
hangs_by_default report results.json ".storage. making the page of $scratch/model $late" report "$scratch/model"
hangs_by_default patients split.csv ".storage. reading $scratch/model $late" inspect "$scratch/model" --patient 1
for name in "${!job[@]}"; do
  wait "${job[$name]}"; rc=$?
  check "$name: what does not answer ends it (exit $rc)" eval '[ $rc = 7 ] && grep -qE "${said[$name]}" "$scratch/$name.log"'
  [ $rc = 7 ] && grep -qE "${said[$name]}" "$scratch/$name.log" || tail -n 5 "$scratch/$name.log"
done
check "nothing half-written is left" [ ! -e "$scratch/started" ]

# A file system that is frozen: its rank cannot even be killed.
disk=$scratch/disk
mkdir "$disk"
truncate -s 100M "$scratch/image"
if mkfs.ext4 -q "$scratch/image" && mount -o loop "$scratch/image" "$disk" && fsfreeze --freeze "$disk" && fsfreeze --unfreeze "$disk"; then
  at_end() { fsfreeze --unfreeze "$disk"; umount -l "$disk"; } 2>/dev/null
  "$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --ranks 2 --out "$disk/run" >"$scratch/log" 2>&1 & job[frozen]=$!
  await_step "$disk/run" 3 "$scratch/log"
  fsfreeze --freeze "$disk"
  wait "${job[frozen]}"; rc=$?
  for name in out svg; do
    case $name in
      out) command=(evaluate "$scratch/model" --split test --out "$disk/scores.csv") ;;
      svg) command=(find-lr "$small" --steps 20 --svg "$disk/rates.svg") ;;
    esac
    timeout 40 "$program" "${command[@]}" --set launch.timeout_s=4 --set launch.ranks=1 >"$scratch/$name.log" 2>&1 &
    await "--$name is named on a file system that is frozen" grep -qE "storage. (writing|looking|reading).* $disk/.* took more than 4 s" "$scratch/$name.log"
  done
  fsfreeze --unfreeze "$disk"
  check "a file system that is frozen ends the run (exit $rc)" [ $rc = 7 ]
  check "a rank says which phase it is in" grep -qE "error: .watchdog. Rank.* 0.* on .* last good checkpoint: unknown, as the run folder does not answer" "$scratch/log"
  check "and the end, that the kernel makes it wait" named "$scratch/log" "rank 0 \(process [0-9]+\) failed and cannot end: .* storage or a driver"
  [ $rc = 7 ] || tail -n 5 "$scratch/log"
else
  echo "skipped: no file system can be frozen here"
fi
finish
