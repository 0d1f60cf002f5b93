#!/usr/bin/env bash
# The loader's memory, counted from outside: no allocation per image in the steady state, memory flat over epochs, and no
# socket without s3://.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
work=$scratch
cc -O1 -shared -fPIC tests/support/count_calls.c -o "$work/count.so" -ldl || fail "the counter does not build"
"$program" phantom "$work/set" --images 256 --size 96 >/dev/null 2>&1
data_config "$work/set" 72 64 >"$work/cfg.yaml"
check pack "$program" pack "$work/cfg.yaml" --out "$work/set.pack"
check records "$program" pack "$work/cfg.yaml" --out "$work/records" --format tfrecord --per-shard 64
(cd "$work/set" && tar cf "$work/set.tar" images && tar czf "$work/set.tar.gz" images)
run() {  # run PLACE COUNT WORKERS: allocations and peak bytes
  COUNT_CALLS=$work/calls LD_PRELOAD=$work/count.so "$program" bench loader --images "$1" --resize 72 --crop 64 --workers "$3" --rounds 1 --count "$2" --json >"$work/json" 2>/dev/null
  allocations=$(cut -d' ' -f2 "$work/calls"); sockets=$(cut -d' ' -f4 "$work/calls")
  peak=$(look 'print(a["peak_bytes"])' "$work/json")
}
for place in set/images set.tar set.tar.gz records set.pack; do
  for workers in 0 2; do
    run "$work/$place" 640 $workers; few=$allocations; small=$peak
    run "$work/$place" 5120 $workers  # ten epochs more, half of them timed
    more=$((allocations - few))
    echo "$place, $workers workers: $more allocations in 8960 images more, peak $((small / 1024)) -> $((peak / 1024)) KiB"
    # Each epoch makes its order anew (a few allocations); nothing else may grow with the images.
    [ "$more" -le 400 ] || fail "$place: $more allocations in 8960 images"
    [ "$peak" -le $((small + small / 50 + 400000)) ] || fail "$place: memory grew from $small to $peak bytes"
    [ "$sockets" = 0 ] || fail "$place: $sockets sockets without s3://"
  done
done
finish
