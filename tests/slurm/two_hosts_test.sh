#!/usr/bin/env bash
# A real Slurm of two hosts: what the environment says to the srun by which mpirun starts its daemons takes no cores from the
# ranks of the second host; ranks that the user's own mpirun puts on too few are told; and a job that is canceled is stopped, while
# each host takes the other's ranks for lost.
{ command -v slurmctld && command -v munged; } >/dev/null || { echo "skipped: no Slurm (scripts/setup --cluster-tests)"; exit 77; }
source tests/lib.sh
cluster=$source_folder/tests/cluster
export NETNS_DIR=$scratch/netns
SLURM_PORT0=${SLURM_PORT0:-$(tests/support/free_ports.py 3)} TASK_PLUGIN=task/affinity "$cluster/slurm_up.sh" -d "$scratch/slurm" -n 2 -c 2 -m netns >"$scratch/up" 2>&1
up=$?
trap '"$cluster/slurm_down.sh" -d "$scratch/slurm"; "$cluster/netns_down.sh"; rm -rf "$scratch"' EXIT
[ "$up" = 0 ] || { cat "$scratch/up"; echo "skipped: no Slurm of two hosts (iproute2, root and two cores are needed)"; exit 77; }
. "$scratch/slurm/env"
cd "$scratch" || exit 1
short=(--set train.max_steps=2 --set eval.splits=[] --set eval.every_epochs=0 --set launch.network=tcp:eth0)
wait_for_end() { for _ in $(seq 900); do [ -z "$(timeout 10 squeue -h -o %i)" ] && return; sleep 0.1; done; echo "FAILED: jobs do not end"; cat ./*.out; exit 1; }
rank_on() { grep -qE "^ *$1 +$2 +$3 " "$4"; }  # rank_on RANK HOST CORES LOG: a row of the table of placement

for variable in SRUN_CPUS_PER_TASK SLURM_EXACT; do
  "$program" submit --scheduler slurm "$small" "${short[@]}" --nodes 2 --ranks-per-node 2 --cpus-per-rank 1 --time 10 --name "$variable" \
    --out "run-$variable" --setup "export $variable=1" >id || { cat id; exit 1; }
  wait_for_end
  log=$variable-$(cat id).out
  check "$variable takes no core from the second host" eval 'rank_on 2 node2 0 "$log" && rank_on 3 node2 1 "$log"'
  check "$variable: nothing is wrong with the cores" eval '! grep -q "of the 2 CPUs" "$log"'
  [ "$failures" = 0 ] || cat "$log"
done

"$program" submit --scheduler slurm "$small" "${short[@]}" --set train.max_steps=1000000 --nodes 2 --ranks-per-node 2 --cpus-per-rank 1 --time 10 \
  --name canceled --out run-canceled >id || { cat id; exit 1; }
log=canceled-$(cat id).out
await_step run-canceled 3 "$log"
scancel "$(cat id)"
wait_for_end
check "scancel is told as a stop" eval 'tail -n 1 "$log" | grep -q "stopped on request, or the job was canceled.*resume with: "'
check "and by the run" eval '"$program" status run-canceled | grep -q stopped'
[ "$failures" = 0 ] || cat "$log"

# Without launch.bind=fix, which would move the ranks where Slurm lets it.
sbatch --wait -N 2 --ntasks-per-node=2 -o own.out --wrap "SRUN_CPUS_PER_TASK=1 mpirun ${root[*]} --bind-to none -np 4 '$program' train '$small' ${short[*]} \
  --set launch.bind=check --out own" >/dev/null 2>&1
check "the user's own mpirun: the warning names the host and the variable" \
  grep -qE "warning: .*\[binding\] node2: the ranks run on 1 of the 2 CPUs .*Hint: .*unset SRUN_CPUS_PER_TASK" own.out
check "the table says so too" grep -qE "^ *3 +node2 +0 .* 1 of the 2 CPUs" own.out
check "of the first host nothing is said" eval '! grep -qE "\[binding\] node1: the ranks" own.out'
[ "$failures" = 0 ] || cat own.out
finish
