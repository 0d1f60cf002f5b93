#!/usr/bin/env bash
# kill -9 of pack at random moments, 12 times (CHEXNET_LONG: 50), pixels and records, one rank and two: the next start goes on,
# nothing under a final name is ever incomplete, and the result is that of an undisturbed run.
set -u
source tests/lib.sh
"$program" phantom "$scratch/set" --images 240 --size 512 >/dev/null 2>&1
data_config "$scratch/set" 144 128 >"$scratch/cfg.yaml"
pack() { "$program" pack "$scratch/cfg.yaml" "$@" 2>/dev/null; }
pack --out "$scratch/good.pack"; pack --out "$scratch/good" --format tfrecord --per-shard 12
wanted=12 kills=0 half=0
[ -z "${CHEXNET_LONG:-}" ] || wanted=50
declare -A whole_ms  # [arguments]
exec 3>&2 2>/dev/null  # the shell reports each killed job
disturbed() {  # disturbed OUT ARGUMENTS...: killed at random moments until it ends by itself
  local out=$1 rc=1 tries=0 began; shift
  # How long it takes undisturbed, measured once per kind: kills fall anywhere into that.
  if [ -z "${whole_ms[$*]:-}" ]; then
    began=$(date +%s%N); "$program" pack "$scratch/cfg.yaml" --out "$scratch/timed${out##*/out}" "$@" 2>/dev/null
    whole_ms[$*]=$((($(date +%s%N) - began) / 1000000)); rm -rf "$scratch"/timed*
  fi
  while [ $rc != 0 ] && [ $tries -lt 20 ]; do
    tries=$((tries + 1))
    setsid "$program" pack "$scratch/cfg.yaml" --out "$out" "$@" 2>"$scratch/err" & local pid=$!
    if [ $kills -lt $wanted ] && [ $tries -le 4 ]; then
      sleep "$(awk -v t="${whole_ms[$*]}" -v r=$RANDOM 'BEGIN { print t / 1000 * (0.3 + 0.7 * r / 32768) }')"
      if kill -9 -- -$pid 2>/dev/null; then kills=$((kills + 1)); fi
      pkill -9 -f "$scratch/cfg.yaml" 2>/dev/null
    fi
    wait $pid 2>/dev/null; rc=$?
    [ $rc = 3 ] || [ $rc = 4 ] || [ $rc = 2 ] && { cat "$scratch/err"; return 1; }
    # What stands under a final name is whole.
    if [ -e "$out" ] && [ -f "$out" ]; then cmp -s "$out" "$scratch/good.pack" || half=$((half + 1)); fi
    for f in "$out"/train-*-of-?????; do [ ! -e "$f" ] || cmp -s "$f" "$scratch/good/${f##*/}" || half=$((half + 1)); done
  done
  [ $rc = 0 ]
}
round=0
while [ $kills -lt $wanted ] && [ $round -lt 60 ]; do
  round=$((round + 1)); ranks=$((1 + round % 2))
  rm -rf "$scratch/out" "$scratch/out.pack" "$scratch/.out.pack.partial"
  disturbed "$scratch/out.pack" --threads 1 --ranks $ranks || check "pixels, round $round" false
  cmp -s "$scratch/out.pack" "$scratch/good.pack" || check "pixels are the same, round $round" false
  disturbed "$scratch/out" --format tfrecord --per-shard 12 --threads 1 --ranks $ranks || check "records, round $round" false
  diff -r -x '*.index' "$scratch/out" "$scratch/good" >/dev/null || check "records are the same, round $round" false
done
echo "$kills kills in $round rounds"
check "$wanted kills" [ $kills -ge $wanted ]
check "no half file" [ $half = 0 ]
finish
