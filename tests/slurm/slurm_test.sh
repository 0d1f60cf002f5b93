#!/usr/bin/env bash
# A real Slurm of one node on this machine: jobs by mpirun and by srun that are signaled, requeued and end with the weights
# of an uninterrupted run; a sweep as an array; a job that stops itself before its time is over.
command -v slurmctld >/dev/null && command -v munged >/dev/null || { echo "skipped: no Slurm (scripts/setup --cluster-tests)"; exit 77; }
source tests/lib.sh
cluster=$source_folder/tests/cluster
# cred_expire is how long Slurm makes a requeued job wait: two minutes by default.
SLURM_PORT0=${SLURM_PORT0:-$(tests/support/free_ports.py 2)} CRED_EXPIRE=5 "$cluster/slurm_up.sh" -d "$scratch/slurm" -n 1 -c 2 -m ports >"$scratch/up" 2>&1 || { cat "$scratch/up"; "$cluster/slurm_down.sh" -d "$scratch/slurm"; echo "skipped: Slurm does not start on this machine"; exit 77; }
trap '"$cluster/slurm_down.sh" -d "$scratch/slurm"; rm -rf "$scratch"' EXIT
. "$scratch/slurm/env"
cd "$scratch" || exit 1
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5)
submit() { "$program" submit --scheduler slurm "$small" "${quick[@]}" --ranks-per-node 2 "$@"; }
wait_for_step() { await_step "$1" "$2" ./*.out; }
wait_for_end() { for _ in $(seq 900); do [ -z "$(timeout 10 squeue -h -o %i)" ] && return; sleep 0.1; done; echo "FAILED: jobs do not end"; timeout 10 squeue; cat ./*.out; exit 1; }
same() { ends_alike "$1" whole "$2"; }
"$program" train "$small" "${quick[@]}" --ranks 2 --out whole >whole.log 2>&1 || { cat whole.log; exit 1; }

for launcher in mpirun srun; do
  job=$(submit --launcher "$launcher" --time 10 --name "$launcher" --out "$launcher-run") || exit 1
  wait_for_step "$launcher-run" 8
  timeout 20 scancel --signal=USR1 --batch "$job"
  wait_for_end
  check "$launcher: the signaled job was requeued with 75" grep -q "exit 75 at checkpoint .*: job $job is requeued" "$launcher-$job.out"
  check "$launcher: it went on" grep -q '"event":"restart"' "$launcher-run/metrics.jsonl"
  same "$launcher: weights after signal, requeue and finish" "$launcher-run"
  check "$launcher: each rank found a placement" grep -Eq "^ *1 +[a-z0-9.-]+ +[01]" "$launcher-$job.out"
done

# The wrong srun gets the right command, not two runs.
sbatch --wait -n 2 -o wrong.out --wrap "srun --mpi=none '$program' train '$small' --out wrong" >/dev/null 2>&1
check "srun without PMIx is told what to do" grep -q "srun --mpi=pmix" wrong.out
sbatch --wait -n 2 -o pmi2.out --wrap "srun --mpi=pmi2 '$program' train '$small' --out pmi2; echo \"exit \$?\"" >/dev/null 2>&1
if grep -q 'no library of MPICH can be opened' pmi2.out; then
  check "srun by PMI-2 too where there is no MPICH, before MPI starts, with exit 5" bash -c "grep -q '^error: .launch. .*srun started this rank by PMI-1 or PMI-2' pmi2.out && grep -qx 'exit 5' pmi2.out && ! grep -q 'MPI_Init' pmi2.out"
fi
# By PMI-2 ranks are MPICH's, and learn the same.
mpich=$(cat "$source_folder/third_party/.mpich" 2>/dev/null)/lib
if [ -e "$mpich/libmpi.so.12" ]; then
  job=$(LD_LIBRARY_PATH=$mpich submit --launcher srun --time 10 --name pmi2 --out pmi2-run --set launch.mpi=mpich) || exit 1
  wait_for_end
  check "srun --mpi=pmi2 starts ranks of MPICH" grep -q 'MPI on host memory, MPICH .*chosen: launch.mpi' "pmi2-$job.out"
  same "and they end as Open MPI's" pmi2-run
else echo "not run: no MPICH (scripts/setup)"; fi

# A sweep is one array; status compares its runs.
submit --time 10 --name sweep --out sweep --sweep train.lr=1e-3,3e-4 --seeds 2 --set train.max_steps=6 --set eval.every_epochs=1 --set eval.splits=[test] >sweep.id || exit 1
wait_for_end
check "a sweep of four runs as one array" [ "$(ls -d sweep/lr=*_seed=* | wc -l)" = 4 ]
"$program" status sweep >sweep.txt
check "status lists four finished runs" [ "$(grep -c ' finished ' sweep.txt)" = 4 ]
check "status compares two settings over two seeds each" [ "$(grep -cE '^train.lr=[0-9.e-]+ +2 +0\.[0-9]+ ± 0\.[0-9]+ \(n = 2\)' sweep.txt)" = 2 ]
cat sweep.txt

# Of a sweep whose losers end early each run has one score and one answer, one that was stopped and requeued too.
submit --time 10 --name halving --out halving --sweep train.lr=1e-3,1e-9,1e-10,1e-11 --stop-losers --set train.epochs=3 --set train.max_steps=0 --set data.val_fraction=0.3 --set eval.every_epochs=1 --set checkpoint.every_steps=3 --set eval.splits=[val] >halving.id || exit 1
wait_for_step halving/lr=1e-10 4
timeout 20 scancel --signal=USR1 --batch "$(cat halving.id)_2"
wait_for_end
"$program" status halving | tee halving.txt
check "each run has one score, and has ended early if and only if its place says so" "$source_folder/tests/support/rungs_check.py" halving
check "the stopped one was requeued" grep -q '"event":"restart"' halving/lr=1e-10/metrics.jsonl

# One minute of time, forty seconds of margin: the program asks squeue and stops itself.
submit --time 1 --max-requeues 0 --line --signal=B:USR1@5 --name short --out short --set train.max_steps=1000000 --set launch.stop_margin_s=40 >short.id || exit 1
wait_for_end
check "the job stopped itself in time" grep -q '"event":"stop".*left of the job' short/metrics.jsonl
check "it says so, and that no restart was allowed" grep -q "no restart: 0 were allowed" "short-$(cat short.id).out"
check "its last step is in the checkpoint" [ "$(readlink short/checkpoints/last)" = "step-$(printf %08d "$(grep '"event":"stop"' short/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')")" ]
finish
