#!/usr/bin/env bash
# Messages when s3:// refuses, and when it does not answer: the server's own words, the right kind of error, and one object's
# attempts instead of a whole batch's.
set -u
source tests/lib.sh
fork_starts
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
mkdir -p "$scratch/buckets"/{xrays,loop,empty,huge,names}
cp -r "$phantom/images" "$scratch/buckets/xrays/images"
cp "$phantom/images/$(head -n 1 "$phantom/test_list.txt")" "$scratch/buckets/names/O'Brien \"1\" & co.png"
python3 tests/support/s3_server.py "$scratch/buckets" --port-file "$scratch/port" --region eu-test-1 --down-while "$scratch/trouble" --log "$scratch/log" & server=$!
await "the store" test -s "$scratch/port"
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$scratch/port")
export AWS_ENDPOINT_URL AWS_REGION=eu-test-1 AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=secret/with+signs HOME=$scratch/home
at=(--set data.images=[s3://xrays/images])
P=(pack "$small" --out "$scratch/x.pack")

AWS_SECRET_ACCESS_KEY=wrong refused 8 "HTTP 403 SignatureDoesNotMatch: The message of SignatureDoesNotMatch. Hint: the secret key" "${P[@]}" "${at[@]}"
AWS_ACCESS_KEY_ID=nobody refused 8 "HTTP 403 InvalidAccessKeyId" "${P[@]}" "${at[@]}"
AWS_REGION=us-east-1 refused 8 "set data.s3.region to eu-test-1" "${P[@]}" "${at[@]}"
AWS_ACCESS_KEY_ID='' refused 8 "The request went unsigned: no credentials found (looked at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and profile 'default' of $scratch/home/.aws/credentials)" "${P[@]}" "${at[@]}"
refused 8 "HTTP 404 NoSuchBucket" "${P[@]}" --set data.images=[s3://nothing/x]
refused 2 "is no name of a bucket" "${P[@]}" --set data.images=["s3://evil.example#/x"]
refused 3 "the listing never ends: it begins again and again" "${P[@]}" --set data.images=[s3://loop/x]
refused 3 "the listing never ends: 101 pages without an object" "${P[@]}" --set data.images=[s3://empty/x]
refused 3 "the answer is longer than the 8388608 bytes" "${P[@]}" --set data.images=[s3://huge/x]
"$program" inspect "$small" --set data.images=[s3://names] --json 2>/dev/null >"$scratch/json"
look 'assert a["not_in_table"] == ["s3://names/O\x27Brien \"1\" & co.png"]' "$scratch/json" || fail "a name with quotes is not read: $(cat "$scratch/json")"

# A server in trouble while training: the attempts of one object, not of a batch; and the same with skip.
trouble() {  # trouble EXIT_CODE NAME COMMAND ARGUMENTS...: COMMAND once the run is in its second step
  local wanted=$1 name=$2 command=$3; shift 3
  "$program" train "$small" "${at[@]}" --set train.max_steps=100000 --set eval.splits=[] --set data.val_fraction=0 --set data.corrupt=skip --set data.prefetch=1 "$@" --out "$scratch/$name" 2>"$scratch/err.txt" & local pid=$!
  await_step "$scratch/$name" 2 "$scratch/err.txt"; $command
  wait $pid; local rc=$?
  [ $rc = "$wanted" ] || { fail "$name is exit $rc, not $wanted"; tail -n 5 "$scratch/err.txt"; }
}
trouble 9 down "touch $scratch/trouble" --set data.readers=1 --set data.s3.attempts=3
grep -qF "HTTP 503 ServiceUnavailable: The message of ServiceUnavailable, after 3 attempts" "$scratch/err.txt" || fail "no word of the server: $(tail -n 3 "$scratch/err.txt")"
sleep 0.5
faults=$(sed 's/.*faults=\([0-9]*\).*/\1/' "$scratch/log")
echo "$faults requests while the server was down"
[ "$faults" -le 16 ] || fail "$faults requests: more than one object was tried to the end"
rm "$scratch/trouble"
# Asked to stop, it waits for no image: neither while the server fails, nor while it says nothing for ten minutes.
stop_after() { "$@"; sleep 1; kill -TERM "$pid"; }
trouble 75 stopped "stop_after touch $scratch/trouble" --set data.s3.attempts=100
rm "$scratch/trouble"
[ -e "$scratch/stopped/checkpoints/last/state.json" ] || fail "no checkpoint of a run that was asked to stop"
trouble 75 silent "stop_after kill -STOP $server" --set data.s3.timeout_s=600
[ -e "$scratch/silent/checkpoints/last/state.json" ] || fail "no checkpoint of a run whose store is silent"
kill -CONT $server
steps=$(look 'print(a["step"])' "$scratch/silent/checkpoints/last/state.json")
"$program" train "$small" "${at[@]}" --set data.val_fraction=0 --set eval.splits=[] --resume yes --out "$scratch/silent" --set train.max_steps=$((steps + 2)) >"$scratch/out.txt" 2>&1 || fail "the stopped run does not go on: $(tail -n 3 "$scratch/out.txt")"
trouble 9 frozen "kill -STOP $server" --set data.s3.timeout_s=1 --set data.s3.attempts=2
grep -qF "[s3] reads have failed for" "$scratch/err.txt" || fail "no line while the server does not answer"
grep -qF "attempt 1 of 2" "$scratch/err.txt" || fail "no attempt is counted"
finish
