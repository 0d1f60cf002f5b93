#!/usr/bin/env bash
# One part of a run is made slow at a time, and `bench run` names it: computing, which is the slowest as it is; reading from a disk and
# from an object store; decoding; augmentation; gradients, which come over a link of 1 Gbit/s; copies to a GPU.
source tests/lib.sh
export AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=secret/with+signs
limited_by() {  # limited_by LIMIT COMMAND...: which writes the JSON of bench run; on a busy machine it may ask to be run again
  local limit=$1; shift
  for again in "" "--steps 20" "--steps 40"; do
    # shellcheck disable=SC2086 # words
    "$@" $again >"$scratch/$limit.json" 2>"$scratch/err.txt" || { check "$limit: bench run: $(tail -n 5 "$scratch/err.txt")" false; return; }
    look 'print(a["limit"] + ": " + a["reason"])' "$scratch/$limit.json"
    ! look 'assert a["limit"] != "unknown"' "$scratch/$limit.json" 2>/dev/null || break
  done
  check "the limit is named: $limit" look "assert a['limit'] == '$limit' and a['advice']" "$scratch/$limit.json"
}
bench=("$program" bench run "$small" --set data.workers=1 --json)

limited_by compute "${bench[@]}"
slow_images 40
limited_by disk "${slow[@]}" "${bench[@]}" --set data.readers=0

mkdir "$scratch/buckets" && ln -s "$phantom/images" "$scratch/buckets/xrays"
python3 tests/support/s3_server.py "$scratch/buckets" --port-file "$scratch/port" --latency 0.4 2>"$scratch/store.txt" &
await "the store" test -s "$scratch/port"
limited_by network env AWS_ENDPOINT_URL="http://127.0.0.1:$(cat "$scratch/port")" "${bench[@]}" --set data.readers=8 --set data.images=[s3://xrays]

"$program" phantom "$scratch/large" --images 1 --size 2048 2>"$scratch/log"
mkdir "$scratch/copies"
for image in "$phantom"/images/*; do ln "$scratch"/large/images/* "$scratch/copies/${image##*/}"; done
limited_by decode "${bench[@]}" --set data.images=["$scratch/copies"]

cc -shared -fPIC -O1 -o "$scratch/sines.so" tests/support/slow_sines.c -ldl
limited_by augmentation env SLOW_SINE_MS=40 LD_PRELOAD="$scratch/sines.so" "${bench[@]}"

cat >"$scratch/on_a_slow_link" <<'SH'
ip link set lo up && tc qdisc add dev lo root tbf rate 1gbit burst 2mbit latency 400ms && exec "$@"
SH
if unshare --net bash "$scratch/on_a_slow_link" true 2>"$scratch/log"; then
  limited_by communication unshare --net bash "$scratch/on_a_slow_link" "${bench[@]}" --ranks 2 --set "launch.mpi_args=[--mca, pml, ob1, --mca, btl, 'tcp,self', --mca, btl_tcp_if_include, lo, --oversubscribe]"
else
  echo "skipped: a slow link needs root and tc: $(tail -n 1 "$scratch/log")"
fi
if [ -x "$CHEXNET_BUILD/chexnet-train-fake" ]; then
  limited_by copy env FAKE_CUDA_DEVICES=1 FAKE_GPU_COPY_US=1000000 "$CHEXNET_BUILD/chexnet-train-fake" "${bench[@]:1}" --set launch.device=fake --set train.precision=fp32
else
  echo "skipped: copies to a GPU: no $CHEXNET_BUILD/chexnet-train-fake"
fi
finish
