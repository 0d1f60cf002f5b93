#!/usr/bin/env bash
# Job scripts of every kind pass shellcheck; a local sweep runs, goes on and is compared; the installation holds what it should.
command -v shellcheck >/dev/null || { echo "skipped: no shellcheck (scripts/setup --cluster-tests)"; exit 77; }
source tests/lib.sh
# Whatever batch system is here.
mkdir "$scratch/slurm" "$scratch/pbs"; touch "$scratch/slurm/sbatch" "$scratch/pbs/pbsnodes"; chmod +x "$scratch/slurm/sbatch" "$scratch/pbs/pbsnodes"
PATH=$scratch/slurm:$PATH
fork_starts
cat >"$scratch/slurm.yaml" <<'YAML'
account: chest
partition: gpu
gpus_per_node: 4
cpus_per_rank: 10
setup: ['module load openmpi', 'export NIH="$HOME/my data"']
constraint: v100
mem: 180G
exclusive: true
YAML
grep -v constraint "$scratch/slurm.yaml" >"$scratch/pbs.yaml"
n=0
declare -A launchers
launchers=([slurm]='mpirun srun' [pbs]=mpirun)
for scheduler in slurm pbs; do
  for extra in "" "--sweep train.lr=1e-3,3e-4 --seeds 2" "--site $scratch/$scheduler.yaml --nodes 2" "--container $scratch/it.sif --nodes 1"; do
    for launcher in ${launchers[$scheduler]}; do
      n=$((n + 1))
      # shellcheck disable=SC2086 # the words of $extra
      "$forked" submit --scheduler $scheduler "$small" --launcher $launcher --out "$scratch/a run" $extra --set "run.name=it's one" --dry-run >"$scratch/job-$n.sh" || exit 1
      check "$scheduler, $launcher, '$extra' passes shellcheck" shellcheck "$scratch/job-$n.sh"
    done
  done
done
check "scripts of the project pass shellcheck" shellcheck -S warning scripts/setup scripts/test scripts/build scripts/quickstart scripts/bundle scripts/check_floor scripts/install/image_steps scripts/install/healthy scripts/install/run third_party/portable/make_libraries
refused 2 "nearest are 'train.lr'" submit "$small" --sweep train.lrr=1 --dry-run
refused 2 "cannot be shared by 32 ranks x 1 micro-batches. Hint: train.batch=32" submit "$small" --nodes 8 --gpus-per-node 4 --dry-run
refused 2 "cannot be shared by 2 ranks x 8 micro-batches" submit "$small" --nodes 2 --sweep train.accumulate=1,8 --dry-run
refused 2 "2 ranks would not use all of 4 GPUs on each host. Hint: " submit "$small" --set launch.device=auto --gpus-per-node 4 --ranks-per-node 2 --dry-run
refused 2 "lr_scaling=none and $scratch/s/lr_scaling=linear would be the same run under two names: train.lr_scaling changes nothing where train.batch is train.lr_base_batch" submit "$small" --set train.batch=16 --out "$scratch/s" --sweep train.lr_scaling=none,linear --dry-run
refused 2 "two names: data.exclude names one place in both. Hint" submit "$small" --sweep "data.exclude=a.txt,$PWD/./a.txt" --dry-run
refused 2 "two names: train.momentum changes nothing beside the other settings. Hint" submit "$small" --set train.optimizer=adam --sweep train.momentum=0.8,0.9 --dry-run
refused 2 "train.lr has one value in both" submit "$small" --sweep train.lr=1e-3,0.001 --dry-run
refused 2 "data.rotate_deg has one value in both" submit "$small" --sweep data.rotate_deg=0,-0 --dry-run
refused 2 "lr=0.001_seed=1 would be the same run" submit "$small" --out "$scratch/s" --sweep train.lr=1e-3,0.001 --seeds 2 --scheduler local --dry-run
"$forked" submit "$small" --nodes 2 --gpus-per-node 4 --time 0:01:00 --dry-run >"$scratch/short.sh" 2>"$scratch/log"
check "GPUs for a config of CPUs get a warning" grep -qF '[submit] the job has 4 GPUs on each host, and launch.device is cpu' "$scratch/log"
check "the warning of a short job leaves most of it" grep -qx '#SBATCH --signal=B:USR1@6' "$scratch/short.sh"
refused 2 "--launcher srun is of Slurm" submit "$small" --scheduler pbs --launcher srun --dry-run

# Containers: Pyxis adds options to srun, Apptainer starts the program; both see what the config names and the run folder.
"$forked" submit "$small" --launcher srun --container registry.example.org#chexnet-train:cuda13 --mount "$scratch:/inside:ro" --out "$scratch/a run" --nodes 2 --dry-run >"$scratch/pyxis.sh" 2>/dev/null
check "Pyxis gets image, mounts and folder" grep -qF "srun --mpi=pmix -c \"\${SLURM_CPUS_PER_TASK:-1}\" '--container-image=registry.example.org#chexnet-train:cuda13' --container-mounts=$scratch:/inside:ro," "$scratch/pyxis.sh"
check "among them the working folder and the config's" bash -c "grep -o -- '--container-mounts=[^ ]*' '$scratch/pyxis.sh' | tr ',' '\n' | grep -cxE '($PWD:$PWD|$scratch:$scratch)' | grep -qx 2"
check "the program is the image's" grep -qx 'program=(chexnet-train)' "$scratch/pyxis.sh"
"$forked" submit "$small" --gpus-per-node 1 --container "$scratch/it.sif" --out "$scratch/run" --dry-run >"$scratch/sif.sh" 2>/dev/null
check "Apptainer shows GPUs and the working folder" grep -qE "^program=\(apptainer exec --nv --pwd $PWD --bind .* $scratch/it.sif chexnet-train\)$" "$scratch/sif.sh"
refused 2 "is started by srun, where Slurm has Pyxis" submit "$small" --container registry/x --dry-run
refused 2 "is started by srun, where Slurm has Pyxis" submit "$small" --scheduler pbs --container registry/x --dry-run
pyxis=(submit "$small" --launcher srun --container registry/x --out "$scratch/run" --set privacy.ids=pseudonym --dry-run)
refused 2 "--container registry/x: patients get pseudonyms, whose key would be in the home of a container" "${pyxis[@]}"
check "a key in a folder of the host is shown to it" bash -c '"$@" 2>/dev/null | grep -q -- "--container-mounts=[^ ]*$0"' "$scratch" "$program" "${pyxis[@]}" --set "privacy.key=$scratch/patients.key"
"$forked" submit "$small" --container x.sif --out "$scratch/run" --set privacy.ids=pseudonym --dry-run >/dev/null 2>&1; rc=$?
check "Apptainer shows the home, and so the key" [ $rc = 0 ]
refused 2 "starts no ranks on other hosts" submit "$small" --nodes 2 --container x.sif --dry-run
refused 2 "--mount a:b is none" submit "$small" --container x.sif --mount a:b --dry-run
refused 2 "--mount tests:/in: a relative path, and a job may start elsewhere. Hint: --mount $PWD/tests:/in" submit "$small" --container x.sif --mount tests:/in --dry-run
printf 'mounts: [tests:/in]\n' >"$scratch/mounts.yaml"
refused 2 "--mount tests:/in: a relative path" submit "$small" --container x.sif --site "$scratch/mounts.yaml" --dry-run
"$forked" submit "$small" --container x.sif --mount /nowhere/data:/in --dry-run >/dev/null 2>"$scratch/err.txt"
check "a mount that this host does not see is said" grep -qF -- '--mount: /nowhere/data is not there on this host' "$scratch/err.txt"
refused 2 "there is no container to show it" submit "$small" --mount "$scratch" --dry-run
refused 2 "so the container would not see it" submit "$small" --container x.sif --out /nowhere/run --dry-run

printf '%s\n' 'account: "a\nrm -rf /"' >"$scratch/evil.yaml"
refused 2 "--account (in a site file account) 'a': holds a blank, quote, backslash or line break" submit "$small" --site "$scratch/evil.yaml" --dry-run
printf 'nodes: 0\n' >"$scratch/none.yaml"
for scheduler in slurm pbs; do
  refused 2 "none.yaml:1: 'nodes' = '0' is no count. Hint: a whole number from 1 to 100000" submit "$small" --scheduler $scheduler --site "$scratch/none.yaml" --dry-run
done
printf '%s\n' 'setup: ["a\nrm -rf /"]' >"$scratch/evil.yaml"
refused 2 "holds a line break" submit "$small" --site "$scratch/evil.yaml" --dry-run
for scheduler in slurm pbs; do
  refused 2 "--account (in a site file account) 'a b': holds a blank" submit "$small" --scheduler $scheduler --account "a b" --dry-run
  refused 2 "--partition (in a site file partition) 'a\"b': holds a blank" submit "$small" --scheduler $scheduler --partition 'a"b' --dry-run
done
refused 2 "--mem (in a site file mem) '64': is no size. Hint: memory of a host, as 64G" submit "$small" --mem 64 --dry-run
refused 2 "--constraint (in a site file constraint) is of Slurm. Hint: --queue" submit "$small" --scheduler pbs --site "$scratch/slurm.yaml" --dry-run
# qsub gives a job no variables but those that are named.
named=(--set 'data.images=["${NIH:-/nowhere}/images"]' --set 'model.weights="${NOT_SET:-none}"')
NIH=$phantom "$forked" submit "$small" --scheduler pbs "${named[@]}" --dry-run >"$scratch/pbs.sh" 2>/dev/null
check "PBS gets the names of the config's variables that are set" grep -qx '#PBS -v NIH' "$scratch/pbs.sh"
check "for its next start, too" grep -q '^variables=NIH,CHEXNET_SUBMISSION=' "$scratch/pbs.sh"
check "and no values" eval '! grep -qF "$phantom" "$scratch/pbs.sh"'
# Whose script: as told, else as the site file says, else of the system that is here.
echo 'scheduler: pbs' >"$scratch/of_pbs.yaml"
is_for() { local path=$2; check "$*" [ "$(PATH=$path "$program" submit "$small" --dry-run "${@:3}" 2>/dev/null | /bin/grep -cE "^#$1 ")" != 0 ]; }
is_for SBATCH "$scratch/pbs:$scratch/slurm"
is_for PBS "$scratch/pbs"
is_for SBATCH /nowhere
is_for PBS "$scratch/slurm" --site "$scratch/of_pbs.yaml"
is_for SBATCH "$scratch/pbs" --site "$scratch/of_pbs.yaml" --scheduler slurm
refused 2 "--slurm' is gone. Hint: now --scheduler slurm" submit "$small" --slurm --dry-run
refused 2 "--ppn' is gone. Hint: now --ranks-per-node" submit "$small" --ppn 2 --dry-run
refused 2 "--gpus' is gone. Hint: now --gpus-per-node" submit "$small" --gpus 2 --dry-run
refused 2 "scripts/examples/lsf.sh" submit "$small" --lsf --dry-run
refused 2 "'--ppn' is not known" inspect "$small" --ppn 2
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp PATH=/nowhere "$program" submit "$small" >"$scratch/out.txt" 2>"$scratch/err.txt"; rc=$?
check "no sbatch: exit 5 (exit $rc), and no script stays" [ "$rc/$(/bin/ls "$scratch/tmp" | /usr/bin/wc -l)" = 5/0 ]
printf '#!/bin/sh\nstat -c %%a "$2" >%s/mode\n' "$scratch" >"$scratch/tmp/sbatch"; chmod +x "$scratch/tmp/sbatch"
echo 'echo 4711' >>"$scratch/tmp/sbatch"
PATH=$scratch/tmp:$PATH "$program" submit "$small" --set data.manifest.path=/elsewhere/table.csv --out "$scratch/a run" >"$scratch/out.txt" 2>"$scratch/err.txt"
check "stdout is the job's id alone" [ "$(cat "$scratch/out.txt")" = 4711 ]
check "people are told how to watch it" grep -qF "chexnet-train status '$scratch/a run'; what it prints: run-*.out here" "$scratch/err.txt"
check "and that this host does not see the table" grep -qF 'data.manifest.path: /elsewhere/table.csv is not there on this host' "$scratch/err.txt"
PATH=$scratch/tmp:$PATH "$program" submit "$small" --name "it's one" --out "$scratch/named" >/dev/null 2>"$scratch/named.txt"
check "by the name that the job has" grep -qF 'what it prints: it_s_one-*.out here' "$scratch/named.txt"
"$forked" status "$scratch/a run" >"$scratch/waits.txt" 2>&1; rc=$?
check "status shows it as waiting for the job (exit $rc)" eval '[ $rc = 0 ] && grep -q "^  run  .*/a run  (waiting)$" "$scratch/waits.txt" && grep -q "^  job  *4711, " "$scratch/waits.txt"'
check "in a folder that is the user's own" [ "$(stat -c %a "$scratch/a run" | tail -c 2)" = 0 ]
PATH=$scratch/tmp:$PATH "$program" submit "$small" --out "$scratch/queued" --seeds 2 --set train.max_steps=1 --set eval.splits=[] >/dev/null 2>&1
"$program" train "$small" --out "$scratch/queued/seed=1" --set run.seed=1 --set train.max_steps=1 --set eval.splits=[] 2>"$scratch/log" || cat "$scratch/log"
"$forked" status "$scratch/queued" --json >"$scratch/states.json"
check "of a sweep, runs that have begun and those that wait" [ "$(grep -o '"state": *"[a-z]*"' "$scratch/states.json" | grep -o '[a-z]*"$' | paste -sd ' ')" = 'finished" waiting"' ]
check "a run that has begun keeps no note" [ ! -e "$scratch/queued/seed=1/submitted" ]
check "the script that is handed over is the user's alone" [ "$(cat "$scratch/mode")" = 600 ]
refused 2 "launch.ranks = 3, and the job would have 2 x 4 ranks" submit "$small" --set launch.ranks=3 --nodes 2 --gpus-per-node 4 --dry-run
check "launch.ranks is what the job asks for" bash -c "'$forked' submit '$small' --set launch.ranks=4 --nodes 2 --dry-run 2>'$scratch/err.txt' | grep -qx '#SBATCH --ntasks-per-node=2'"
check "and one core per rank is said" grep -qF 'each rank gets one core' "$scratch/err.txt"
"$forked" submit "$small" --cpus-per-rank 2 --dry-run 2>"$scratch/err.txt" >/dev/null
check "where it is not asked for" [ ! -s "$scratch/err.txt" ]
refused 2 "is no time" submit "$small" --time soon --dry-run
refused 2 "launch.time_limit: 'abc' is no time" submit "$small" --set launch.time_limit=abc --dry-run
# Where a host that computes may not submit, the line to type is in the log and in status, and goes with the next start.
mkdir "$scratch/no-qsub"; printf '#!/bin/sh\nexit 1\n' >"$scratch/no-qsub/qsub"; chmod +x "$scratch/no-qsub/qsub"
by_hand() {  # by_hand STEPS LIMIT
  "$program" submit "$small" --scheduler pbs --nodes 1 --ranks-per-node 1 --time 0:10:00 --out "$scratch/by hand" --set train.max_steps="$1" --set launch.time_limit="$2" --set launch.stop_margin_s=25 --dry-run >"$scratch/job.sh" 2>/dev/null
  PATH=$scratch/no-qsub:$PATH bash "$scratch/job.sh" >"$scratch/job.log" 2>&1
}
rc=0; by_hand 100000 0:00:30 || rc=$?
check "exit $rc: a job that qsub refuses to start again" test $rc = 75
line=$(grep '^qsub ' "$scratch/job.log")
check "its log has the line" test -n "$line"
check "status has it" bash -c '"$0" status "$1" | grep "goes on with" | grep -qF -- "$2"' "$program" "$scratch/by hand" "$line"
check "the next start ends" by_hand 1 1:00:00
check "and the line is gone" bash -c '! "$0" status "$1" | grep "goes on with"' "$program" "$scratch/by hand"
refused 2 "launch.time_limit: 'abc' is no time" submit "$small" --sweep launch.time_limit=1:00:00,abc --dry-run
refused 2 "is a quote closed" submit "$small" --setup "module load 'x" --dry-run
check "a setup of several lines" bash -c "'$forked' submit '$small' --setup 'if true; then' --setup 'module load x; fi' --dry-run 2>/dev/null | grep -qx 'module load x; fi'"
for option in --account --partition --qos --constraint --mem --time --name --out --site --container; do
  refused 2 "$option: is empty" submit "$small" $option '' --dry-run
done
mkdir -p "$scratch/of a run"; cp "$small" "$scratch/of a run/config.yaml"
refused 4 "of a run: holds a run, and would get those of the sweep. Hint: --out FOLDER" submit "$small" --out "$scratch/of a run" --scheduler local --seeds 2 --dry-run
mkdir -p "$scratch/of a run/checkpoints/step-000001"
refused 2 "of a run: the config differs from the run's:" submit "$small" --out "$scratch/of a run" --set model.arch=resnet50 --dry-run
mkdir "$scratch/data set"; touch "$scratch/data set/Data_Entry.csv"
refused 4 "data set: is not empty and holds no run, but Data_Entry.csv" submit "$small" --out "$scratch/data set" --scheduler local --seeds 2 --dry-run
refused 2 "/nowhere/hosts: cannot be read" submit "$small" --scheduler local --sweep launch.hostfile=/nowhere/hosts --dry-run
refused 2 "--set run.seed=1, and --seeds sets the same key" submit "$small" --set run.seed=1 --seeds 2 --dry-run
refused 2 "--set train.lr=1, and --sweep sets the same key" submit "$small" --set train.lr=1 --sweep train.lr=1,2 --dry-run
refused 2 "cannot be shared by 2 ranks x 8 micro-batches" submit "$small" --scheduler local --set launch.ranks=2 --sweep train.accumulate=1,8 --dry-run
"$forked" submit "$small" --scheduler local --sweep model.weights=none,/nowhere/w.safetensors --dry-run >/dev/null 2>"$scratch/err.txt"
check "weights of a point that are absent are said" grep -qF 'model.weights: /nowhere/w.safetensors is not there on this host' "$scratch/err.txt"
for more in "--nodes 2" "--account chest" "--exclusive" "--mem 1G" "--setup x" "--container x.sif"; do
  # shellcheck disable=SC2086 # an option and its value
  refused 2 "excludes" submit "$small" --scheduler local --seeds 2 $more --dry-run
done

sweep=("$small" --scheduler local --out "$scratch/sweep" --sweep train.lr_scaling=none,linear --set train.max_steps=3 --set eval.splits=[test])
"$forked" submit "${sweep[@]}" --dry-run >"$scratch/sweep.txt" 2>"$scratch/log"
check "a dry run prints the two commands of a local sweep" [ "$(grep -c "^$program train .*--out $scratch/sweep/lr_scaling=[a-z]* --resume auto$" "$scratch/sweep.txt")/$(wc -l <"$scratch/sweep.txt")" = 2/2 ]
check "and runs none of them" [ ! -e "$scratch/sweep" ]
"$program" submit "${sweep[@]}" >"$scratch/sweep.txt" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "a local sweep trains its two runs and compares them" grep -Eq '^train.lr_scaling=linear +1 +0\.[0-9]+ \(n = 1\)' "$scratch/sweep.txt"
check "the same command again trains nothing twice" bash -c "'$program' submit ${sweep[*]} >/dev/null 2>&1 && [ \$(grep -c '\"event\":\"train\"' '$scratch/sweep/lr_scaling=none/metrics.jsonl') = 3 ]"
"$forked" submit "${sweep[@]}" --sweep train.lr=1e-4 --dry-run >"$scratch/more.txt" 2>"$scratch/log"
check "a folder of runs takes more of them" [ "$(wc -l <"$scratch/more.txt")" = 2 ]
"$program" submit "$small" --scheduler local --out "$scratch/stopped" --seeds 2 --set train.max_steps=100000 >"$scratch/log" 2>&1 & job=$!
await_step "$scratch/stopped/seed=1" 1 "$scratch/log"; kill -INT $job
rc=0; wait $job || rc=$?
check "a sweep that is stopped says how it goes on (exit $rc)" bash -c "[ $rc = 75 ] && grep -q 'the sweep stopped in run 1 of 2: the same command goes on there' '$scratch/log'"
rm -r "$scratch/sweep/lr_scaling=linear"; mkdir "$scratch/sweep/lr_scaling=linear"; touch "$scratch/sweep/lr_scaling=linear/log"
"$program" submit "${sweep[@]}" >"$scratch/sweep.txt" 2>"$scratch/log"; code=$?
check "a run that fails gives the sweep its exit code" bash -c "[ $code = 4 ] && grep -q '1 of 2 runs failed' '$scratch/log'"

# The prediction of bench scaling for Dell's cluster, by the program.
"$forked" bench scaling configs/clusters/dell_article_2019.yaml --ranks 1,16 --json >"$scratch/scaling.json"
printf 'name: bare\nimages_per_s: 100\n' >"$scratch/bare.yaml"
"$forked" bench scaling configs/clusters/c4140_v100.yaml --rate A100-80GB --ranks 1 >"$scratch/a100.txt"
check "bench scaling names the basis of a computed rate" grep -qF "3300.0 images/s on one (computed, not measured: 2039 GB/s, NVIDIA A100 data sheet, 2021, SXM)" "$scratch/a100.txt"
refused 2 "[bench] --rate A100 is no number, no file and no known GPU. Hint: T4, V100, A30, A40, A100-40GB, A100-80GB, L4, L40S, H100, H200; or images/s" bench scaling configs/clusters/c4140_v100.yaml --rate A100
check "it says what it assumes" bash -c "'$forked' bench scaling '$scratch/bare.yaml' --ranks 1 | grep -qx '4 GPUs per host; links 100 GB/s and 3.0 us inside a host, 10 GB/s and 6.0 us between hosts; jitter .*'"
check "it gives 185 and 1913 images/s within 5 %" look 'one, sixteen = (r["images_per_s"] for r in a["results"])
assert abs(one / 185.12 - 1) < 0.05 and abs(sixteen / 1912.82 - 1) < 0.05' "$scratch/scaling.json"
echo 'gpus: 4' >"$scratch/cluster.yaml"
refused 2 "unknown key 'gpus'" bench scaling "$scratch/cluster.yaml"
echo '{"images_per_s": 10, "batch": 4, "ranks": 2, "model": "densenet121"}' >"$scratch/bench.json"
refused 2 "no measurement of one rank" bench scaling configs/clusters/dell_article_2019.yaml --rate "$scratch/bench.json"
refused 2 "the rates of known GPUs are of densenet121" bench scaling configs/clusters/c4140_v100.yaml --rate V100 --model resnet50
echo '{"images_per_s": 12, "batch": 8, "model": "densenet121", "ranks": 1}' >"$scratch/step.json"
refused 2 "step.json is of densenet121" bench scaling configs/clusters/c4140_v100.yaml --rate "$scratch/step.json" --model resnet50
sed 's/12,/1e308,/' "$scratch/step.json" >"$scratch/fast.json"
refused 2 "--rate 1e+308 is out of range" bench scaling configs/clusters/c4140_v100.yaml --rate "$scratch/fast.json"
sed 's/, "ranks": 1//' "$scratch/step.json" >"$scratch/infer.json"
refused 2 "no measurement of one rank" bench scaling configs/clusters/c4140_v100.yaml --rate "$scratch/infer.json"

cmake --install "$CHEXNET_BUILD" --prefix "$scratch/installed" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
check "the installed program runs where it lies" "$scratch/installed/bin/chexnet-train" --version
check "module file" grep -q 'prepend-path PATH' "$scratch"/installed/share/modulefiles/chexnet-train/*
check "completion completes commands, options and keys" bash -c "
source '$scratch/installed/share/bash-completion/completions/chexnet-train'
try() { COMP_WORDS=(\"\$@\"); COMP_CWORD=\$((\$# - 1)); _chexnet_train 2>/dev/null; echo \"\${COMPREPLY[*]}\"; }
[ \"\$(try chexnet-train eval)\" = evaluate ] && [[ \"\$(try chexnet-train bench allr)\" = *allreduce* ]] && [[ \"\$(try chexnet-train train c.yaml --res)\" = --resume ]] && [[ \"\$(try chexnet-train train c.yaml --set launch.bi)\" = launch.bind= ]]"
# A portable build keeps to the declared versions (scripts/setup --portable).
grep -q '^CHEXNET_PORTABLE:[A-Z]*=.' "$CHEXNET_BUILD/CMakeCache.txt" &&
  check "no file asks for a newer C library than declared" scripts/check_floor "$scratch"/installed/bin/* "$scratch"/installed/lib/*.so

# Runs that are not among the best third end at their rung. Rates that change next to nothing tie, and of ties the first goes on.
losers=("$small" --scheduler local --out "$scratch/halving" --sweep train.lr=1e-3,1e-9,1e-10,1e-11 --stop-losers --set train.epochs=3 --set train.max_steps=0 --set data.val_fraction=0.3 --set eval.splits=[val])
refused 2 "--stop-losers is for sweeps" submit "$small" --stop-losers --dry-run
refused 2 "of 2 runs a third is none" submit "$small" --set train.max_steps=0 --sweep train.lr=1,2 --stop-losers --dry-run
refused 2 "train.max_steps may end a run before an epoch" submit "$small" --sweep train.lr=1,2,3 --stop-losers --dry-run
refused 2 "runs that differ in data.fold have no scores that compare" submit "$small" --set train.max_steps=0 --sweep data.fold=1/3,2/3,3/3 --stop-losers --dry-run
refused 2 "losses that differ in train.class_weights do not compare" submit "$small" --set train.max_steps=0 --set checkpoint.best=loss --sweep train.class_weights=none,balanced,pos_weight --stop-losers --dry-run
refused 2 "eval.every_epochs=0 has no score before the end" submit "$small" --set train.max_steps=0 --set eval.every_epochs=0 --sweep train.lr=1,2,3 --stop-losers --dry-run
refused 2 "of 2 epochs a third is less than one" submit "$small" --set train.epochs=2 --set train.max_steps=0 --sweep train.lr=1,2,3 --stop-losers --dry-run
refused 2 "seeds of one setting would end at several times" submit "$small" --sweep train.lr=1,2,3 --seeds 3 --stop-losers --dry-run
refused 2 "train.rungs: no whole epochs that ascend" train "$small" --set train.rungs=[2,1] --out "$scratch/none"
"$forked" submit "${losers[@]}" --sweep train.momentum=0.1,0.2,0.3 --set train.optimizer=sgd --set train.epochs=9 --dry-run >"$scratch/twelve.txt" 2>"$scratch/log"
check "twelve runs have two rungs" [ "$(grep -c "train.rungs=\[1,3\]" "$scratch/twelve.txt")" = 12 ]
"$program" submit "${losers[@]}" >"$scratch/halving.txt" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
ended=$(tests/support/rungs_check.py "$scratch/halving"); rc=$?; ended=${ended##* }
check "a run ends early if and only if its place says so: $ended" [ $rc = 0 ]
check "the comparison names it with its place" grep -Eq "^$ended ends after 1 epoch: place [2-4] of [2-4], of which [12] go(es)? on" "$scratch/halving.txt"
check "status says it" bash -c "'$program' status '$scratch/halving/$ended' | grep -q 'in its sweep *ends after 1 epoch'"
before=$(cat "$scratch/halving"/.rungs/*/*)
"$program" submit "${losers[@]}" >"$scratch/again.txt" 2>"$scratch/log"
check "the same command again trains nothing, and no score is there twice" [ "$before $(ls "$scratch/halving/.rungs/epoch-1" | wc -l)" = "$(cat "$scratch/halving"/.rungs/*/*) 4" ]
check "its page has a curve for each run" bash -c "'$program' report --compare '$scratch/halving' --out '$scratch/halving.html' >/dev/null 2>&1 && grep -q 'ends after 1 epoch' '$scratch/halving.html'"
check "a run that ended goes on without rungs" "$program" train "$small" --set train.lr="${ended#lr=}" --set train.epochs=3 --set train.max_steps=0 --set data.val_fraction=0.3 --set eval.splits=[val] --set train.rungs=[] --out "$scratch/halving/$ended" --resume auto >"$scratch/log" 2>&1
check "to its end" look 'assert a["epoch"] == 3' "$scratch/halving/$ended/checkpoints/last/state.json"
"$program" train "$small" --set train.epochs=3 --set train.max_steps=0 --set data.val_fraction=0.3 --set eval.splits=[val] --set train.rungs=[1] \
  --set checkpoint.best=loss --out "$scratch/halving/by-loss" 2>"$scratch/log"
check "a loss is not compared with AUROCs" grep -q "sweep: goes on after 1 epoch: place 1 of 1" "$scratch/log"
finish
