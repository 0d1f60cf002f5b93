#!/usr/bin/env bash
# A rank that finds, stages, looks at or packs the data longer than launch.timeout_s while the others wait is no hang as long as it
# makes progress; one that makes none is named. Reads are slowed by a preloaded library.
source tests/lib.sh
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -shared -fPIC -O1 -o "$scratch/slow.so" tests/support/slow_reads.c -ldl || exit 1
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set train.max_steps=2 --set launch.timeout_s=2 --ranks 2)
slow() {  # slow MS NAME COMMAND...
  local ms=$1 name=$2; shift 2
  SLOW_MS=$ms SLOW_NAME=$name LD_PRELOAD="$scratch/slow.so" timeout 120 "$program" "$@" >"$scratch/log" 2>&1
}

# Four reads to index it, and four to stage it.
mkdir "$scratch/tar"
tar cf "$scratch/tar/images.tar" -C "$phantom" images
head -c 26000000 /dev/zero >"$scratch/zeros.bin"
tar rf "$scratch/tar/images.tar" -C "$scratch" zeros.bin

slow 700 images.tar train "$small" "${quick[@]}" --out "$scratch/staged" --set data.images=["$scratch/tar"] --set data.stage="$scratch/node" --set data.workers=8
rc=$?
check "indexing and staging, each for longer than the deadline (exit $rc)" [ $rc = 0 ]
check "the archive was copied" grep -q "stage: 1 files (.* copied" "$scratch/log"
[ $rc = 0 ] || tail -n 5 "$scratch/log"

# Rank 1 is done long before rank 0.
SLOW_RANK=0 slow 60 .png pack "$small" --set launch.timeout_s=2 --ranks 2 --threads 1 --out "$scratch/x.pack"
rc=$?
check "packing for longer than the deadline (exit $rc)" [ $rc = 0 ]
[ $rc = 0 ] || tail -n 5 "$scratch/log"

# Before the first step: one rank's images of the validation split come slowly, and a stop is not kept waiting for them.
look=(--set eval.splits=[] --set data.val_fraction=0.6 --set train.max_seconds=0.001)
SLOW_RANK=1 slow 100 .png train "$small" "${look[@]}" --set launch.timeout_s=1 --ranks 2 --out "$scratch/looked"
rc=$?
check "looking at the images for longer than the deadline, and training begins (exit $rc)" [ $rc = 75 ]
check "with a checkpoint" [ -e "$(weights "$scratch/looked")" ]
[ $rc = 75 ] || tail -n 5 "$scratch/log"
for asked in "USR1 2" "STOP 1"; do
  read -r request ranks <<<"$asked"
  run=$scratch/stopped-$request
  SLOW_NAME=.png SLOW_MS=400 LD_PRELOAD="$scratch/slow.so" "$program" train "$small" "${look[@]}" --ranks "$ranks" --out "$run" >"$scratch/log" 2>&1 & pid=$!
  for _ in $(seq 400); do [ -e "$run/log/rank-000.txt" ] && break; sleep 0.05; done
  sleep 0.2
  if [ "$request" = USR1 ]; then kill -USR1 $pid; else touch "$run/STOP"; fi
  wait $pid; rc=$?
  check "$request while images are looked at ends with 75 (exit $rc)" [ $rc = 75 ]
  check "and says so" grep -q "before the first step: nothing was trained" "$scratch/log"
  check "and leaves no run behind" [ ! -e "$run/config.yaml" ]
done
"$program" train "$small" "${look[@]}" --out "$run" --resume auto >"$scratch/log" 2>&1
check "--resume auto starts it" grep -q "stopped by train.max_seconds at step" "$scratch/log"

rm -f "$scratch/tar/images.tar.index"
slow 60000 images.tar train "$small" "${quick[@]}" --out "$scratch/stuck" --set data.images=["$scratch/tar"]
rc=$?
check "a rank without progress ends the run (exit $rc)" [ $rc = 7 ]
check "and is named with what it did" grep -q "rank 0 on .*: finding the images made no progress for 2 s" "$scratch/log"
[ $rc = 7 ] || tail -n 5 "$scratch/log"
finish
