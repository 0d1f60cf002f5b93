#!/usr/bin/env bash
# A rank that finds, stages, looks at or packs the data longer than launch.timeout_s while the others wait is no hang as long as it
# makes progress; one that makes none is named. Reads are slowed by a preloaded library; the slow ones wait beside each other.
source tests/lib.sh
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
deadline_s=15  # far more than a start or a read takes on a busy machine, which would be named as a hang
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set train.max_steps=2 --set "launch.timeout_s=$deadline_s" --ranks 2)
declare -A job
slow() {  # slow MS FILES NAME COMMAND...: goes on beside the others; its output is in NAME.log
  slow_images "$1"
  "${slow[@]}" SLOW_NAME="$2" "$program" "${@:4}" --out "$scratch/$3" >"$scratch/$3.log" 2>&1 & job[$3]=$!
}
ended() {  # ended NAME CODE TEXT: with this exit code
  wait "${job[$1]}"; local rc=$?
  check "$3 (exit $rc)" [ $rc = "$2" ]
  [ $rc = "$2" ] || tail -n 5 "$scratch/$1.log"
}

# Four reads to index it, and four to stage it.
mkdir "$scratch/tar"
tar cf "$scratch/tar/images.tar" -C "$phantom" images
head -c 26000000 /dev/zero >"$scratch/zeros.bin"
tar rf "$scratch/tar/images.tar" -C "$scratch" zeros.bin
cp -r "$scratch/tar" "$scratch/tar2"

slow 4200 /tar/images.tar staged train "$small" "${quick[@]}" --set data.images=["$scratch/tar"] --set data.stage="$scratch/node" --set data.workers=8
# Rank 1 is done long before rank 0.
SLOW_RANK=0 slow 220 .png x.pack pack "$small" --set "launch.timeout_s=$deadline_s" --ranks 2 --threads 1
# Before the first step: one rank's images of the validation split come slowly, and a stop is not kept waiting for them.
look=(--set eval.splits=[] --set data.val_fraction=0.6 --set train.max_steps=1)
SLOW_RANK=1 slow 450 .png looked train "$small" "${look[@]}" --set "launch.timeout_s=$deadline_s" --ranks 2
slow 60000 /tar2/images.tar stuck train "$small" "${quick[@]}" --set data.images=["$scratch/tar2"]

# shellcheck disable=SC2046 # processes
reads_images() { find $(pgrep -f -- "--out $1( |\$)" | sed 's|.*|/proc/&/fd|') -lname '*.png' | grep -q .; }
for asked in "USR1 2" "STOP 1"; do
  read -r request ranks <<<"$asked"
  run=$scratch/stopped-$request
  slow 1000 .png "stopped-$request" train "$small" "${look[@]}" --ranks "$ranks"
  await "images are looked at" reads_images "$run"
  if [ "$request" = USR1 ]; then kill -USR1 "${job[stopped-USR1]}"; else touch "$run/STOP"; fi
  ended "stopped-$request" 75 "$request while images are looked at ends with 75"
  check "and says so" grep -q "before the first step: nothing was trained" "$run.log"
  check "and leaves no run behind" [ ! -e "$run/config.yaml" ]
done
"$program" train "$small" "${look[@]}" --out "$run" --resume auto >"$scratch/log" 2>&1
check "--resume auto starts it" [ -e "$(weights "$run")" ]

ended staged 0 "indexing and staging, each for longer than the deadline"
check "the archive was copied" grep -q "stage: 1 file (.* copied" "$scratch/staged.log"
ended x.pack 0 "packing for longer than the deadline"
ended looked 0 "looking at the images for longer than the deadline, and training begins"
check "with a checkpoint" [ -e "$(weights "$scratch/looked")" ]
ended stuck 7 "a rank without progress ends the run"
check "and is named with what it did" grep -q "rank 0 on .*: finding the images made no progress for $deadline_s s" "$scratch/stuck.log"
finish
