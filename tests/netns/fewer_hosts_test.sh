#!/usr/bin/env bash
# Restarts without a host that is gone: the run goes on with the ranks that are left and the same batch, and ends with the bytes of a
# run that was resumed by hand on them, and no rank takes more images at once. Hosts are network namespaces of this machine.
source tests/netns/lib.sh
printf 'node%d slots=2\n' 1 2 3 >three
settings=(--set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.precision=fp64 --set checkpoint.every_steps=4
  --set checkpoint.keep=99 --set launch.timeout_s=5 "${agent[@]}")
restarted=(--set launch.restarts=3)
in_job=()  # variables of a batch system
slow_images 100  # or a run is over before its host is taken away, where this machine is busy

lose() {  # lose RUN "COMMAND" ARGUMENTS...: a run from node1, in which COMMAND takes a host away after step 6; its exit code
  local run=$1 command=$2; shift 2
  on node1 "${slow[@]}" "${in_job[@]}" "$program" train "$small" "${settings[@]}" "${restarted[@]}" --out "$run" "$@" >"$run.log" 2>&1 & local job=$!
  await_step "$run" 6 "$run.log"
  eval "$command"
  wait $job; rc=$?
}
says() { check "$1: $2" grep -q -- "\[launch\] $2" "$1.log"; }
resumed_from() { grep -o '"event":"restart".*' "$1/metrics.jsonl" | head -n 1 | sed 's/.*"step":\([0-9]*\).*/\1/'; }
by_hand() {  # by_hand RUN ARGUMENTS...: RUN-by-hand, gone on with from the checkpoint at which RUN went on without its host
  local run=$1 hand=$1-by-hand step; shift
  step=$(printf 'step-%08d' "$(resumed_from "$run")")
  cp -a "$run" "$hand"
  local later
  for later in "$hand"/checkpoints/step-*; do [[ ${later##*/} > $step ]] && rm -rf "$later"; done
  rm -f "$hand"/checkpoints/best "$hand"/hosts; ln -sfn "$step" "$hand/checkpoints/last"
  on node1 "$program" train "$small" "${settings[@]}" --out "$hand" --resume auto "$@" >"$hand.log" 2>&1 || { tail -n 20 "$hand.log"; check "$hand" false; }
  check "$run: went on from $step, before its end" [ "$step" != "$(readlink "$run/checkpoints/last")" ]
  ends_alike "$run ends as one that was resumed by hand" "$run" "$hand"
}

# The power of one of three.
# Six ranks that take 4 images each become four that take 6, in two parts.
lose power '"$cluster/nskill" node2 >/dev/null' --hostfile three --set train.batch=24 --set train.max_steps=16
check "power: the run ends well (exit $rc)" [ $rc = 0 ]; [ $rc = 0 ] || tail -n 30 power.log
says power "no answer from node2: the run goes on with 4 of 6 ranks, on node1, node3 (power/hosts), with train.accumulate=2"
check "power: it names the hosts that are left" diff power/hosts <(printf 'node%d slots=2\n' 1 3)
printf 'node%d slots=2\n' 1 3 >two
by_hand power --hostfile two --set train.batch=24 --set train.max_steps=16 --set train.accumulate=2

# Another host replaces it in the host file while the parent waits for it: as many ranks as before.
printf 'node%d slots=2\n' 1 3 >changing
lose replaced '"$cluster/nskill" node3 >/dev/null; printf "node%d slots=2\n" 1 4 >changing' --hostfile changing --set train.batch=12 --set train.max_steps=16
check "replaced: the run ends well (exit $rc)" [ $rc = 0 ]; [ $rc = 0 ] || tail -n 30 replaced.log
check "replaced: on the new host" grep -qE '^ *3 +node4 ' replaced.log
check "replaced: nothing is missing" bash -c "! grep -q 'no answer from' replaced.log"

# A link that is cut, and a batch that fewer of the ranks left can share: 9 images among 3 ranks, but not among 2.
printf 'node1 slots=2\nnode4 slots=1\n' >uneven
lose cut 'on node4 ip link set eth0 down' --hostfile uneven --set train.batch=9 --set train.max_steps=16
on node4 ip link set eth0 up
check "cut: the run ends well (exit $rc)" [ $rc = 0 ]; [ $rc = 0 ] || tail -n 30 cut.log
says cut "no answer from node4: the run goes on with 1 of 3 ranks, on node1 (cut/hosts), with train.accumulate=3; there is room for 2, but they cannot share the batch"
by_hand cut --ranks 1 --set train.batch=9 --set train.max_steps=16 --set train.accumulate=3

# The hosts of a batch system instead of a host file: each system's variables, as a job of two hosts sees them.
printf 'node%d 2 all.q UNDEFINED\n' 1 4 >pe
mkdir bin; printf '#!/bin/sh\n[ "$1" != hostlist ] || echo node1 node4\n' >bin/flux; chmod +x bin/flux
for system in lsf grid-engine flux; do
  case $system in
    lsf) in_job=(LSB_JOBID=7 "LSB_MCPU_HOSTS=node1 2 node4 2") ;;
    grid-engine) in_job=(JOB_ID=7 SGE_TASK_ID=undefined NSLOTS=4 "PE_HOSTFILE=$scratch/pe") ;;
    flux) in_job=(FLUX_URI=local:///none "PATH=$scratch/bin:$PATH") ;;
  esac
  lose $system 'on node4 ip link set eth0 down' --ranks 4 --set train.batch=12 --set train.max_steps=16
  on node4 ip link set eth0 up
  check "$system: the run ends well (exit $rc)" [ $rc = 0 ]; [ $rc = 0 ] || tail -n 30 $system.log
  says $system "no answer from node4: the run goes on with 2 of 4 ranks, on node1 ($system/hosts), with train.accumulate=2"
done
in_job=()
by_hand lsf --ranks 2 --set train.batch=12 --set train.max_steps=16 --set train.accumulate=2

# Fewer than are wanted.
printf 'node%d slots=2\n' 1 4 >pair
lose wanted '"$cluster/nskill" node4 >/dev/null' --hostfile pair --set train.batch=12 --set train.max_steps=1000000 --set launch.min_hosts=2
check "wanted: exit 5 or 7 (exit $rc)" [ $rc = 5 -o $rc = 7 ]
says wanted "no answer from node4: 1 host left, launch.min_hosts=2. Hint: repair or replace"
check "wanted: its last checkpoint is there" [ -e "$(weights wanted)" ]
finish
