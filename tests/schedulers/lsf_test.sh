#!/usr/bin/env bash
# The script for LSF under a stand-in (tests/cluster/lsf_stand_in.sh): a signal, the run limit and a canceled job; starts
# again end with the weights of an uninterrupted run; a sweep is an array; hosts and the time left are read.
source tests/lib.sh
export LSF_DIR=$scratch/lsf
mkdir -p "$LSF_DIR" "$scratch/bin"
for name in bsub bjobs bkill; do ln -s "$source_folder/tests/cluster/lsf_stand_in.sh" "$scratch/bin/$name"; done
PATH=$scratch/bin:$PATH
cd "$scratch" || exit 1
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5)
submit() { "$program" submit --lsf "$small" "${quick[@]}" --ranks-per-node 2 "$@" 2>/dev/null | tee submitted | sed -n 's/^Job <\([0-9]*\)>.*/\1/p'; }
wait_for_end() { await_logs=(./*.out); await "job $1 ends" [ -e "$LSF_DIR/$1.done" ]; }
ends() { cat "$LSF_DIR/$1.ends"; }
shared_run whole whole || exit 1

job=$(submit --time 2:00:00 --name signaled --out 'a run') || exit 1
await_step 'a run' 8 ./*.out
bkill -s USR1 "$job"
wait_for_end "$job"
check "the job asked for another start with 99, and ended with 0" [ "$(ends "$job" | tr '\n' ',')" = "0 99 1,0 0 2," ]
check "what the first start printed is kept" grep -q "exit 75 at checkpoint .*: job $job is requeued" "signaled-$job.out"
check "it went on" grep -q '"event":"restart"' 'a run/metrics.jsonl'
check "the run knows its job and the time left" grep -q "\"job\":\"$job\"" 'a run/metrics.jsonl'
ends_alike "weights after signal, another start and finish" whole 'a run'

# At the run limit LSF sends USR2 to every process: ranks, mpirun, parent and script.
job=$(LSF_MINUTE=1 LSF_GRACE=60 submit --time 0:20:00 --name limit --out limit --max-requeues 0 --line "-wa ''" --set train.max_steps=1000000 --set launch.time_limit=24:00:00) || exit 1
wait_for_end "$job"
check "USR2 at the run limit is a stop with a checkpoint" [ "$(ends "$job")" = "0 75 1" ]
check "and no other start was allowed" grep -q "no restart: 0 were allowed" "limit-$job.out"
check "its last step is in the checkpoint" [ "$(readlink limit/checkpoints/last)" = "step-$(printf %08d "$(grep '"event":"stop"' limit/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')")" ]

# The program asks bjobs, and stops before.
job=$(submit --time 0:02:00 --name margin --out margin --max-requeues 0 --set train.max_steps=1000000 --set launch.stop_margin_s=100) || exit 1
wait_for_end "$job"
check "the job stopped itself in time" grep -q '"event":"stop".*left of the job' margin/metrics.jsonl

job=$(submit --time 2:00:00 --name canceled --out canceled --set train.max_steps=1000000) || exit 1
await_step canceled 8 ./*.out
bkill "$job"
wait_for_end "$job"
check "a canceled job is not started again" [ "$(ends "$job" | wc -l)" = 1 ]

job=$(submit --time 2:00:00 --name sweep --out sweep --sweep train.lr=1e-3,3e-4 --set train.max_steps=6) || exit 1
wait_for_end "$job"
check "a sweep of two runs as one array" [ "$(ends "$job" | tr '\n' ',')" = "1 0 1,2 0 1," ]
check "and both are finished" [ "$("$program" status sweep | grep -c ' finished ')" = 2 ]

host=$(hostname)
hosts=(LSB_JOBID=7 "LSB_MCPU_HOSTS=$host 2 node9 2")
check "two hosts of LSF are mpirun's" bash -c "env $(printf '%q ' "${hosts[@]}") '$program' train '$small' --dry-run | grep -q -- '--host $host:2,node9:2 .*-np 4 '"
finish
