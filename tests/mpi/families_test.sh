#!/usr/bin/env bash
# One build under several MPIs: the same two ranks in fp64 end with the same bytes under Open MPI 4.1, Open MPI 5 and MPICH, which
# the program chooses by what starts it; a launcher and an MPI that do not fit are one sentence with exit code 5.
source tests/lib.sh
place_of() { cat "$source_folder/third_party/.$1" 2>/dev/null; }  # as scripts/setup wrote it down
mpich=$(place_of mpich)/bin openmpi5=$(place_of openmpi5)/bin
path=$PATH
declare -A folder says
has() {  # has KEY FOLDER TEXT: the mpirun in FOLDER says TEXT of its version
  if PATH=$2:$path mpirun --version 2>/dev/null | tr '\n' ' ' | grep -qE "$3"; then folder[$1]=$2; else echo "skipped: no $1"; fi
}
has "Open MPI 4" "$(dirname "$(command -v mpirun)")" 'Open MPI\) 4\.'
has "Open MPI 5" "$openmpi5" 'Open MPI\) 5\.'
has MPICH "$mpich" '^HYDRA'
[ ${#folder[@]} -gt 1 ] || { echo "skipped: only one MPI here (scripts/setup --cluster-tests)"; exit 77; }
[ -e "$CHEXNET_BUILD/libchexnet_mpich.so" ] || [ -z "${folder[MPICH]:-}" ] || { echo "skipped: built without MPICH"; exit 77; }
says=(["Open MPI 4"]="MPI on host memory, Open MPI 4\.[0-9.]+, PML ob1" ["Open MPI 5"]="MPI on host memory, Open MPI 5\.[0-9.]+, PML"
  [MPICH]="MPI on host memory, MPICH [0-9.]+, ch4:")

exact=(--set train.precision=fp64 --set train.max_steps=4 --set checkpoint.every_steps=2 --set eval.splits=[]
  --set eval.every_epochs=0 --set data.val_fraction=0)
losses() { look 'print(*((e["step"], e["loss"], e["gradient_norm"]) for e in of("train", a)), sep="\n")' "$1/metrics.jsonl"; }
first='' checked=0
for mpi in "Open MPI 4" "Open MPI 5" MPICH; do
  [ -n "${folder[$mpi]:-}" ] || continue
  export PATH=${folder[$mpi]}:$path
  run=$scratch/${mpi// /-}
  "$program" train "$small" "${exact[@]}" --ranks 2 --out "$run" >"$run.log" 2>&1 || { cat "$run.log"; check "$mpi: two ranks train" false; continue; }
  check "$mpi: the settings say so" grep -qE "${says[$mpi]}.*\(chosen: the launcher's\)" "$run.log"
  check "$mpi: two ranks, not two runs" grep -qE '^ *1 +[a-zA-Z0-9.-]+ +[0-9]' "$run.log"
  as_root=(); [[ $mpi == MPICH ]] || as_root=("${root[@]}")
  mpirun "${as_root[@]}" -np 2 "$program" train "$small" "${exact[@]}" --out "$run-plain" >"$run-plain.log" 2>&1 || { tail -n 20 "$run-plain.log"; check "$mpi: plain mpirun" false; continue; }
  ends_alike "$mpi: mpirun and self-launch end alike" "$run" "$run-plain"
  "$program" doctor --ranks 2 --folder "$scratch" >"$run.doctor" 2>&1
  check "$mpi: doctor names mpirun and the library of one installation" bash -c "
    grep -qE '^PASS +mpirun +$mpi' '$run.doctor' && grep -qE '^PASS +MPI library +$mpi' '$run.doctor' && ! grep -q '^FAIL' '$run.doctor'"
  [ -z "$first" ] || {
    ends_alike "$mpi ends as $first does" "$scratch/${first// /-}" "$run"
    check "$mpi: losses are equal to the last digit" diff <(losses "$scratch/${first// /-}") <(losses "$run")
    checked=$((checked + 1))
  }
  first=${first:-$mpi}
done
check "several MPIs were compared ($checked with the first)" [ "$checked" -gt 0 ]

if [ -n "${folder[MPICH]:-}" ]; then
  export PATH=${folder[MPICH]}:$path
  refused 5 "launch.mpi=openmpi asks for Open MPI. Hint: put the bin folder of Open MPI first" train "$small" --ranks 2 --set launch.mpi=openmpi --out "$scratch/no"
  check "and of a rank" bash -c "mpirun -np 1 '$program' train '$small' --set launch.mpi=openmpi --out '$scratch/no' 2>&1 | grep -q '^error: .launch. the launcher of MPICH started this rank, and launch.mpi=openmpi'"

  run=$scratch/stopped
  "$program" train "$small" "${exact[@]}" --ranks 2 --set train.max_steps=1000000 --set launch.timeout_s=60 --out "$run" >"$run.log" 2>&1 & job=$!
  await_step "$run" 2 "$run.log"
  kill -USR1 $job; wait $job; rc=$?
  check "USR1 under MPICH: a checkpoint and 75 (exit $rc)" [ $rc = 75 ]
  check "no process is left" no_process "$run"

  # Hydra kills the other rank at once when one is killed; the code is ours, not Hydra's (9, the signal's).
  run=$scratch/killed
  "$program" train "$small" "${exact[@]}" --ranks 2 --set train.max_steps=1000000 --set launch.timeout_s=20 --out "$run" >"$run.log" 2>&1 & job=$!
  await_step "$run" 4 "$run.log"
  for process in $(pgrep -f -- "--out $run"); do
    if grep -qz '^PMI_RANK=1$' "/proc/$process/environ" 2>/dev/null; then kill -9 "$process"; fi
  done
  wait $job; rc=$?
  check "a killed rank under MPICH ends the run with 5 (exit $rc)" [ $rc = 5 ]
  check "and is told with how to go on" bash -c "tail -n 3 '$run.log' | grep -qE '(mpirun ended with exit code 137 .signal 9 ended it or a rank|Rank 1 on .* died).*resume with'"
  [ $rc = 5 ] || tail -n 20 "$run.log"
  check "no process is left" no_process "$run"

  # A program with one side alone.
  alone() {  # alone NAME: the program with this library and no other
    mkdir -p "$scratch/$1"
    cp "$CHEXNET_BUILD/chexnet-train" "$CHEXNET_BUILD/lib$1.so" "$scratch/$1/"
    ln -sfn "$(readlink -f "$CHEXNET_BUILD/torch")" "$scratch/$1/torch"
  }
  one_sentence() {  # one_sentence TEXT EXIT: the last command's output has one error alone
    check "one sentence: $1 (exit $2)" bash -c "[ $2 = 5 ] && grep '^error:' '$scratch/out' | sort -u | wc -l | grep -qx 1 && grep -q -- '$1' '$scratch/out' && ! grep -q 'MPI_Init' '$scratch/out'"
    [ "$2" = 5 ] || cat "$scratch/out"
  }
  alone chexnet_mpi
  "$scratch/chexnet_mpi/chexnet-train" train "$small" --ranks 2 --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "built without MPICH .* Hint: start it by the mpirun of Open MPI" $rc
  mpirun -np 2 "$scratch/chexnet_mpi/chexnet-train" train "$small" --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "built without MPICH" $rc
  alone chexnet_mpich
  export PATH=${folder["Open MPI 4"]:-${folder["Open MPI 5"]}}:$path
  "$scratch/chexnet_mpich/chexnet-train" train "$small" --ranks 2 --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "built without Open MPI .* Hint: start it by the mpirun of MPICH" $rc
  mpirun "${root[@]}" -np 2 "$scratch/chexnet_mpich/chexnet-train" train "$small" --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "built without Open MPI" $rc

  # An mpirun of MPICH whose library is nowhere.
  mkdir "$scratch/bin"; cp "${folder[MPICH]}/mpirun" "${folder[MPICH]}/hydra_pmi_proxy" "$scratch/bin"
  export PATH=$scratch/bin:$path
  "$program" train "$small" --ranks 2 --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "no library of MPICH can be opened: libmpi.so.12" $rc
  mpirun -np 2 "$program" train "$small" --out "$scratch/no" >"$scratch/out" 2>&1; rc=$?
  one_sentence "the launcher of MPICH started this rank: load the module of MPICH" $rc
fi
finish
