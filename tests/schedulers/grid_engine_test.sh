#!/usr/bin/env bash
# A real Grid Engine of two hosts (network namespaces of this machine), with scripts as scripts/examples/grid_engine.sh: ranks on
# both, as its host file says; a job that is stopped, started again by exit code 99 and ends with the weights of an uninterrupted run
# (on one host: the example says why); one that stops itself before h_rt is over; a deleted one, which -notify warns by USR2.
command -v qconf >/dev/null && [ -x /usr/sbin/sge_qmaster ] || { echo "skipped: no Grid Engine (scripts/setup --cluster-tests)"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: network namespaces take root"; exit 77; }
# Separate networks, so that hosts of other tests have other addresses.
if [ -z "${CHEXNET_OWN_NET:-}" ]; then CHEXNET_OWN_NET=yes exec unshare --net --mount --propagation private "$0"; fi
source tests/lib.sh
cluster=$source_folder/tests/cluster
at_end() { "$cluster/gridengine_down.sh" -d "$scratch/ge"; }
"$cluster/gridengine_up.sh" -d "$scratch/ge" >"$scratch/up" 2>&1 || { cat "$scratch/up"; echo "skipped: Grid Engine does not start on this machine"; exit 77; }
. "$scratch/ge/env"
cd "$scratch" || exit 1
on() { "$cluster/nsexec" "$@"; }
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5)
wait_for_end() { await_logs=(./*.out); await "jobs end" eval '[ -z "$(on node1 qstat)" ]'; }
submit() {  # submit NAME PE LIMIT OPTIONS...: prints the job's number
  local name=$1 pe=$2 limit=$3; shift 3
  { printf '#!/bin/bash\n#$ -N %s -pe %s 2 -l h_rt=%s -notify -cwd -j y -o %s.out\ntrap : USR1 USR2\n' "$name" "$pe" "$limit" "$name"
    printf 'export OMPI_MCA_btl_base_warn_component_unused=0 OMP_WAIT_POLICY=passive\n'
    printf '%q ' "$program" train "$small" "${quick[@]}" --out "$scratch/$name" --resume auto "$@"
    printf '; code=$?\ncase $code in 5 | 7 | 9 | 75) exit 99 ;; *) exit $code ;; esac\n'; } >"$name.sh"
  on node1 qsub -terse "$name.sh"
}
shared_run whole whole || exit 1

job=$(submit again smp 0:10:00) || exit 1
await_step again 8 again.out
pkill -USR1 -o -f -- "--out $scratch/again --resume" # the parent of the ranks, in the job's process group
wait_for_end
check "the run knows its job and the time left" bash -c "grep -q '\"job\":\"$job\"' again/metrics.jsonl && grep -q job_seconds_left again/metrics.jsonl"
check "exit code 99 started it again, by the same number" grep -q '"event":"restart"' again/metrics.jsonl
ends_alike "weights after a stop, another start and finish" whole again

submit limit smp 0:01:30 --set train.max_steps=1000000 --set launch.stop_margin_s=60 >limit.id || exit 1
await "a job stops itself before h_rt is over" has_line limit '"event":"stop".*left of the job'
on node1 qdel "$(cat limit.id)" >/dev/null
wait_for_end

submit deleted mpi 0:10:00 --set train.max_steps=1000000 >deleted.id || exit 1
await_step deleted 8 deleted.out
on node1 qdel "$(cat deleted.id)" >/dev/null
wait_for_end
check "ranks ran on the hosts of the host file" grep -q -- '--host node[12]:1,node[12]:1 ' deleted.out
check "on both of them" bash -c "grep -qE '^ +0 +node[12]' deleted.out && grep -qE '^ +1 +node[12]' deleted.out"
check "a deleted job writes a checkpoint" grep -q '"event":"stop"' deleted/metrics.jsonl
check "and is not started again" [ "$(grep -c '"event":"restart"' deleted/metrics.jsonl)" = 0 ]
finish
