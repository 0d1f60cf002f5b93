#!/usr/bin/env bash
# A real Flux of one broker on this machine: a job that is signaled, submitted again and ends with the weights of an
# uninterrupted run; one that stops itself before its time is over; a sweep, a job for each of its runs; a canceled job.
command -v flux >/dev/null || { echo "skipped: no Flux (Debian has none: flux-framework.org)"; exit 77; }
if [ -z "${CHEXNET_IN_FLUX:-}" ]; then CHEXNET_IN_FLUX=yes exec flux start "$0"; fi
source tests/lib.sh
cd "$scratch" || exit 1
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5)
submit() { "$program" submit --flux "$small" "${quick[@]}" --ranks-per-node 2 "$@"; }
wait_for_end() { await_logs=(./*.out); await "jobs end" eval '[ -z "$(flux jobs -n -o "{id.dec}")" ]'; }
shared_run whole whole || exit 1

submit --time 10 --name signaled --out signaled >signaled.id || exit 1
await_step signaled 8 ./*.out
flux job kill --signal=USR1 "$(cat signaled.id)"
wait_for_end
check "the signaled job was submitted again with 75" grep -q "exit 75 at checkpoint .*: submitted again, 1 of 20" signaled-*.out
check "by a job of its own" [ "$(find . -name 'signaled-*.out' | wc -l)" = 2 ]
check "it went on" grep -q '"event":"restart"' signaled/metrics.jsonl
ends_alike "weights after signal, another start and finish" whole signaled
check "the run knows its job" grep -q "\"job\":\"$(cat signaled.id)\"" signaled/metrics.jsonl

# One minute of time, forty seconds of margin: the program asks Flux and stops itself.
submit --time 1 --max-requeues 0 --line=--signal=USR1@5s --name short --out short --set train.max_steps=1000000 --set launch.stop_margin_s=40 >/dev/null || exit 1
wait_for_end
check "the job stopped itself in time" grep -q '"event":"stop".*left of the job' short/metrics.jsonl
check "it says so, and that no restart was allowed" grep -q "no restart: 0 were allowed" short-*.out

submit --time 10 --name sweep --out sweep --sweep train.lr=1e-3,3e-4 --set train.max_steps=6 >sweep.id || exit 1
check "a sweep of two runs is two jobs" [ "$(wc -l <sweep.id)" = 2 ]
wait_for_end
check "and both are finished" [ "$("$program" status sweep | grep -c ' finished ')" = 2 ]

submit --time 10 --name canceled --out canceled --set train.max_steps=1000000 >canceled.id || exit 1
await_step canceled 8 ./*.out
flux cancel "$(cat canceled.id)"
wait_for_end
check "a canceled job is not submitted again" [ "$(find . -name 'canceled-*.out' | wc -l)" = 1 ]

check "hosts are those of the instance" bash -c "'$program' train '$small' --ranks 4 --dry-run | grep -q -- '-np 4'"
finish
