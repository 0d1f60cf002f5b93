#!/usr/bin/env bash
# run.after_checkpoint, with a tool that copies a run file by file, as to an object store: killed with its run in the
# middle of a copy, failing, and not ending. A run goes on from its copy to the bits of a run without a stop.
source tests/lib.sh
quick=(--set checkpoint.every_steps=3 --set checkpoint.keep=2)
"$program" train "$small" "${quick[@]}" --out "$scratch/whole" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
cat >"$scratch/copy" <<'SH'  # copy FOLDER COPY: slowly; old files go last
set -e
copy=$2
# A second copy is held in its middle where the test says so.
middle() { case $1 in */optimizer.safetensors) [ ! -e "$copy.hold" ] || [ ! -e "$copy.log" ] || { touch "$copy.held"; exec sleep 1000; };; esac; }
echo $$ >"$2.pid"
(cd "$1" && find . -type f) | while read -r file; do
  mkdir -p "$(dirname "$2/$file")"
  cmp -s "$1/$file" "$2/$file" || { sleep 0.05; cp "$1/$file" "$2.part"; middle "$file"; mv "$2.part" "$2/$file"; }
done
(cd "$2" && find . -type f) | while read -r file; do [ -e "$1/$file" ] || rm "$2/$file"; done
find "$2" -type d -empty -delete
echo done >>"$2.log"
SH
copying=run.after_checkpoint="exec sh $scratch/copy \"\$1\" $scratch/copied"
start() { exec "${slow[@]}" "$program" train "$small" "${quick[@]}" --set "$1" --out "${@:2}"; }
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }

# ---- a copy, its end, and a resume from it
(start "$copying" "$scratch/run" --ranks 2) 2>"$scratch/log"; check "a run that is copied ends well" test $? = 0
for file in $(cd "$scratch/run" && find . -type f ! -name '.*'); do
  cmp -s "$scratch/run/$file" "$scratch/copied/$file" || { [ "${file#./log}" != "$file" ] || check "$file is copied" false; }
done
check "nothing is copied that the run no longer has" test "$(ls "$scratch/copied/checkpoints")" = "$(cd "$scratch/run/checkpoints" && printf "%s\n" step-*)"
check "its view of the run is gone" test ! -e "$scratch/run/.after_checkpoint"
check "end says that no command failed" grep -q '"event":"end".*"after_checkpoint_failures":0' "$scratch/run/metrics.jsonl"

# The run is held after its second checkpoint: on a busy machine it would be over before its copies.
rm -r "$scratch/copied" "$scratch/copied.log"
touch "$scratch/copied.hold"
slow_images 1000000 "$scratch/killed/checkpoints/step-00000006"
start "$copying" "$scratch/killed" 2>"$scratch/killed.log" & run=$!
await_logs=("$scratch/killed.log")
await "a second copy comes to its middle" test -e "$scratch/copied.held"
command=$(cat "$scratch/copied.pid")
kill -9 "$run"; wait $run 2>/dev/null
await "the command is gone with its run" gone "$command"
slow=(); rm -f "$scratch/copied.hold" "$scratch/copied.part"
check "not at its end" test ! -e "$scratch/copied/checkpoints/step-00000024"
"$program" train "$small" "${quick[@]}" --out "$scratch/copied" --resume auto 2>"$scratch/log" || { cat "$scratch/log"; check "the copy goes on" false; }
check "from a checkpoint" test "$(grep -c '"event":"restart"' "$scratch/copied/metrics.jsonl")" = 1
for file in model optimizer; do
  check "killed and resumed from its copy: $file of the run without a stop" \
    cmp "$scratch/copied/checkpoints/last/$file.safetensors" "$scratch/whole/checkpoints/last/$file.safetensors"
done

# ---- failures
"$program" train "$small" "${quick[@]}" --set run.after_checkpoint='echo no such bucket >&2; exit 7' --out "$scratch/failing" --json \
  >"$scratch/json" 2>"$scratch/log"; check "a command that fails ends no run" test $? = 0
check "each time is told" grep -q 'run.after_checkpoint: exit code 7: no such bucket' "$scratch/log"
check "and counted" look 'assert a["after_checkpoint_failures"] >= 2, a' "$scratch/json"
check "the weights are the same" cmp "$(weights "$scratch/failing")" "$(weights "$scratch/whole")"

# ---- a command that does not end: the end of the run waits for it no longer than a stop may last. It is no rank, so it is not
# told to stop, which ranks are after some seconds
(start run.after_checkpoint='trap "touch '"$scratch"'/told" USR1; touch '"$scratch"'/begun; sleep 1000' "$scratch/hanging" --ranks 2 \
  --set launch.stop_margin_s=9 \
  --set train.max_steps=100000 2>"$scratch/log") & run=$!
await "the command has begun" test -e "$scratch/begun"
kill -TERM $run; wait $run; check "a stop ends with 75" test $? = 75
check "the command was left alone until then" test ! -e "$scratch/told"
# Ranks of a command are not told either.
(start run.after_checkpoint="mpirun --allow-run-as-root --oversubscribe -np 2 sh -c 'touch $scratch/inner; sleep 12; echo whole >>$scratch/inner'" "$scratch/nested" --ranks 2 \
  --set train.max_steps=100000 2>"$scratch/nested.log") & run=$!
await "the command's ranks have begun" test -e "$scratch/inner"
kill -TERM $run; wait $run; check "a stop beside them ends with 75" test $? = 75
check "they came to their end" [ "$(grep -c whole "$scratch/inner")" -ge 2 ]
check "the command was killed" grep -q 'run.after_checkpoint: killed, as it did not end' "$scratch/log"
check "the stop is in the metrics" grep -q '"event":"stop".*after_checkpoint_failures' "$scratch/hanging/metrics.jsonl"
finish
