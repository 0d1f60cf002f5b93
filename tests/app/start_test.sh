#!/usr/bin/env bash
# Whatever keeps ranks from starting is one sentence with its exit code, before mpirun is started; doctor prints its rows all
# the same.
source tests/lib.sh
T=(train "$small" --ranks 2 --out "$scratch/run")
mkdir "$scratch/empty" "$scratch/lam"
printf '#!/bin/sh\necho "LAM 7.1.4/MPI 2"\n' >"$scratch/lam/mpirun"; chmod +x "$scratch/lam/mpirun"
path=$PATH
plain() {  # plain CODE PART ARGUMENTS...: `refused` without a program of PATH
  local code=$1 part=$2 rc=0; shift 2
  "$program" "$@" >"$scratch/out.txt" 2>"$scratch/err.txt" </dev/null || rc=$?
  PATH=$path
  check "exit $rc: $part" bash -c "[ $rc = $code ] && cat '$scratch/out.txt' '$scratch/err.txt' | grep -qF -- '$part'"
}
refused 2 "has no eth9. Hint: it has " "${T[@]}" --set launch.network=tcp:eth9
[ -e /sys/class/infiniband ] || refused 5 "has no such adapter" "${T[@]}" --set launch.network=ib
PATH=$scratch/empty plain 5 "there is none in PATH. Hint: install openmpi-bin" "${T[@]}"
PATH=$scratch/lam plain 5 "lam/mpirun is neither Open MPI" "${T[@]}"
TMPDIR=$scratch/absent refused 5 "is no folder. Hint: export TMPDIR" "${T[@]}"
(export PMI_FD=3 PMI_RANK=0 PMI_SIZE=2 SLURM_STEP_ID=0; refused 5 "srun --mpi=pmix" train "$small" --out "$scratch/run"; finish) || failures=$((failures + 1))

starts() {  # starts N ARGUMENTS...: a dry run names N ranks
  local n=$1; shift
  check "$*: $n ranks" bash -c '"$@" --dry-run 2>/dev/null | grep -q -- "-np $0 "' "$n" "$program" "$@"
}
starts 3 train "$small" --set launch.ranks=3 --set train.batch=9
starts 2 train "$small" --set launch.ranks=3 --ranks-per-node 2
starts 4 train "$small" --ranks-per-node 2 --ranks 4
refused 2 "--set launch.ranks=3, and --ranks sets the same key. Hint: leave one out" train "$small" --set launch.ranks=3 --ranks 2
refused 2 "--set run.dir=a, and --out sets the same key" "${T[@]}" --set run.dir=a
refused 2 "train.lr=1: no such file. Hint: --set train.lr=1" train "$small" --set train.epochs=1 train.lr=1
refused 2 "cannot be shared by 1000000 ranks" train "$small" --ranks 1000000
refused 2 "cannot be shared by 1000000 ranks" train "$small" --ranks 1000000 --dry-run
refused 2 "'trian' is not known. Hint: nearest are 'train'" trian "$small"
refused 2 "'allredcue' is not known. Hint: nearest are 'allreduce'" bench allredcue
refused 2 "'--train.lr' is not known. Hint: it is a key of the config: --set train.lr=VALUE" train "$small" --train.lr=3
refused 2 "'--listen' is gone. Hint: now --openmetrics" status --listen 80
refused 2 "'--man' is gone. Hint: now help2man" config --man
refused 2 "s3://b/a.yaml: cannot be read: No such file or directory. Hint: only files of a file system are read here" train s3://b/a.yaml
refused 2 "'--lr' is not known. Hint: it is a key of the config: --set train.lr=VALUE" train "$small" --lr=0.1
refused 2 "Hint: it is a key of the config: --set train.batch=VALUE" train "$small" --batch-size 8
refused 2 "'--rnks' is not known. Hint: nearest are '--ranks'" train "$small" --rnks=2
refused 2 "'--outt' is not known. Hint: nearest are '--out'" train "$small" --outt dir
check "far options are not named" bash -c '! grep -q -- "--set" "$0"' "$scratch/err.txt"
refused 2 "'--epochs' is not known. Hint: it is a key of the config: --set train.epochs=VALUE" train "$small" --epochs 5
refused 2 "'frobnicate' is not known. Hint: chexnet-train --help shows what there is" frobnicate
refused 2 "'sex' is one word too many. Hint: write --by again for another value; chexnet-train evaluate --help" evaluate run --by age sex
refused 2 "'more' is one word too many. Hint: chexnet-train evaluate --help" evaluate run more
refused 2 "sex: is taken for a run or model, which --predictions excludes" evaluate --predictions p.csv --by age sex
refused 2 "--print-config" train "$small" --print-config --json
check "no YAML is printed for JSON" [ ! -s "$scratch/out.txt" ]
refused 2 "'patients' is gone. Hint: now inspect RUN --patient ID" patients run 7
refused 2 "'diagnose' is gone. Hint: now status RUN, or bench run CONFIG" diagnose "$small"
refused 2 "'plan' is gone. Hint: now bench scaling CLUSTER --rate GPU" plan cluster.yaml --gpu V100
refused 2 "'plan' is gone. Hint: now bench scaling" plan --help
refused 2 "'--sensitivity' is gone. Hint: now --set eval.sensitivity=0.9" evaluate --predictions p.csv --sensitivity 0.9
refused 2 "prefix excludes --completion" config --completion bash
refused 2 "--patient asks one run folder" inspect run other --patient 7
mkdir "$scratch/folder"
refused 2 "[inspect] --set changes a config, and $scratch/folder is a folder. Hint: inspect $scratch/folder/config.yaml --set a=b" inspect "$scratch/folder" --set a=b
for command in "inspect $scratch/folder $small" "bench run $scratch/folder"; do
  # shellcheck disable=SC2086  # several words
  refused 2 "folder: is a folder. Hint: name a YAML file; of a run that is $scratch/folder/config.yaml" $command
done
refused 2 "'generate' is gone. Hint: now config --completion" generate completion
refused 2 "'--format' is gone. Hint: now --set data.manifest.format=csv" evaluate run --format csv
refused 2 "'--threads' is gone. Hint: now --set launch.threads=2" bench step --threads 2
refused 2 "'--threads' is not known" bench pipelines --shards here --threads 2
refused 2 "--set train.lr: this bench does not follow it" bench step --set train.lr=1
check "--help names the page of errors last" test "$("$program" --help | tail -n 1)" = "Exit codes and errors: docs/errors.md"
check "and fits a screen" [ "$("$program" --help | wc -l)" -le 30 ]
check "train --help ends with where its keys are" grep -q 'docs/config.md' <<<"$("$program" train --help | tail -n 1)"

rows() { "$program" doctor --folder "$scratch" --json "$@" >"$scratch/rows.json" 2>"$scratch/err.txt"; echo "exit $?"; }
fails() {  # fails NAME EXIT: this row alone is a FAIL
  check "doctor: $1 is a row (${2})" look "
assert [r['name'] for r in a['checks'] if r['level'] == 'FAIL' and r['advice']] == ['$1'] and len(a['checks']) > 12 and '$2' == 'exit 5'" "$scratch/rows.json"
}
code=$(TMPDIR=$scratch/absent rows --ranks 2); fails TMPDIR "$code"
# A full folder: a small file system made here, where this user may make one.
if [ "$(id -u)" = 0 ] && mkdir "$scratch/full" && mount -t tmpfs -o size=1m tmpfs "$scratch/full" 2>/dev/null; then
  TMPDIR=$scratch/full refused 5 "/full has 1.0 MiB free, 16.0 MiB are needed. Hint: make room there" "${T[@]}"
  code=$(TMPDIR=$scratch/full rows --ranks 2); fails TMPDIR "$code"
  umount "$scratch/full"; mount -t tmpfs -o nr_inodes=8 tmpfs "$scratch/full"
  TMPDIR=$scratch/full refused 5 "/full has room for 7 files, 64 are needed. Hint: make room there" "${T[@]}"
  umount "$scratch/full"
else
  echo "skipped: no tmpfs of our own for a full TMPDIR"
fi
code=$(PATH=$scratch/lam:$path rows --ranks 2); fails mpirun "$code"
code=$(rows --network tcp:eth9 --ranks 2); fails "network interface" "$code"
code=$(rows)
check "doctor of one rank says which mpirun and MPI library there are ($code)" look '
said = {row["name"]: row["text"] for row in a["checks"]}
assert "Open MPI" in said["mpirun"] and "Open MPI" in said["MPI library"]' "$scratch/rows.json"
finish
