#!/usr/bin/env bash
# Every line of docs/errors.md: what is wrong, the exit code, and a text that says what to do.
source tests/lib.sh
fork_starts
started() { forked='' refused "$@"; }  # each exit code is also tested by real starts, without forking
T=(train "$small" --out "$scratch/run")
echo "train: {lr: 1, lr: 2}" >"$scratch/twice.yaml"
echo "train: {lrr: 1}" >"$scratch/unknown.yaml"
echo "train: {batch: many}" >"$scratch/type.yaml"
: >"$scratch/empty.yaml"
started 2 "data.manifest.path: this key is required and missing" train "$scratch/empty.yaml"
refused 2 "twice.yaml:1: key 'train.lr' appears twice" train "$scratch/twice.yaml"
refused 2 "unknown.yaml:1: unknown key 'train.lrr'. Hint: nearest are 'train.lr'" train "$scratch/unknown.yaml"
refused 2 "type.yaml:1: 'train.batch' wants integer or auto, not 'many'" train "$scratch/type.yaml"
refused 2 "cannot be read: No such file" train "$scratch/absent.yaml"
refused 2 "data.manifest.path: this key is required and missing" inspect "$scratch/empty.yaml"
refused 2 "data.images: this key is required and missing" pack "$scratch/empty.yaml" --set data.manifest.path=t.csv --out "$scratch/nothing.pack"
refused 2 "cannot be read: No such file" bench scaling "$scratch/absent.yaml"
for measured in '10, "ranks": "one"' '"10"' '1e400' '10, "batch": "4"' '10, "model": 7'; do
  echo "{\"model\": \"densenet121\", \"batch\": 4, \"images_per_s\": $measured}" >"$scratch/bench.json"
  refused 2 "no measurement of one rank" bench scaling configs/clusters/dell_article_2019.yaml --rate "$scratch/bench.json"
done
for option in "rate nan" "ranks -4" "images nan" "epochs -1" "batch 1e300"; do
  # shellcheck disable=SC2086  # with its value
  refused 2 "[bench] --${option% *} " bench scaling configs/clusters/c4140_v100.yaml --$option
done
OMP_NUM_THREADS=100000 refused 2 "OMP_NUM_THREADS=100000 is more threads than a rank can have" "${T[@]}" --set launch.threads=auto
started 2 "--set train.lr" "${T[@]}" --set train.lr=fast
refused 2 "train.lr: 0: no weight would ever change" "${T[@]}" --set train.lr=0
refused 2 "cannot be shared by 3 ranks" "${T[@]}" --set train.batch=8 --ranks 3
refused 2 "'train.batch' = 0 is out of range" "${T[@]}" --set train.batch=0
refused 2 "needs the memory plan of our own engine" "${T[@]}" --set train.batch=auto --set train.engine=aten
refused 2 "is not known" "${T[@]}" --set model.arch=vgg
refused 2 "'train.betas' = 1 is out of range" "${T[@]}" --set train.betas=[0.9,1]
refused 2 "train.betas: two numbers are needed" "${T[@]}" --set train.betas=0.9
refused 2 "a split is named twice" "${T[@]}" --set eval.splits=[val,val]
cp "$small" "$scratch/kept.yaml"
refused 2 "was not written by this command" train "$scratch/kept.yaml" --out "$scratch/timed" --timeline "$scratch/kept.yaml"
refused 2 "would be replaced, or written twice" train "$small" --out "$scratch/timed" --timeline "$scratch/timed"
check "a config named as timeline is as it was" cmp "$small" "$scratch/kept.yaml"
mkfifo "$scratch/outpipe"
refused 2 "--out: '-' would be a file of that name. Hint: /dev/stdout" report --compare "$scratch/a" "$scratch/b" --out -
refused 2 "--figures: '-' would be a file of that name" evaluate --predictions "$small" --figures -
refused 2 "train.lr: 0: no weight would ever change" train "$small" --set train.lr=0 --print-config
check "--print-config prints what train would refuse, too" grep -q "lr: 0" "$scratch/out.txt"
refused 4 "a pipe or device, in whose place a file would stand" "${T[@]}" --timeline "$scratch/outpipe"
refused 2 "two runs would have the folder lr=1" submit "$small" --scheduler slurm --sweep train.lr=1,2,1 --dry-run
check "help that nobody can read is exit 4" [ "$("$program" --help 2>/dev/null >/dev/full; echo $?)" = 4 ]
"$program" phantom "$scratch/drawn" --images 40 --size 32 >/dev/null 2>&1 & drawing=$!
"$program" phantom "$scratch/drawn" --images 40 --size 32 --seed 2 >/dev/null 2>&1; rc=$?
wait $drawing; codes="$? $rc"
check "one of two commands that draw a set in one folder is refused ($codes)" [ "$codes" = "0 4" -o "$codes" = "4 0" ]
mkdir "$scratch/home"; touch "$scratch/home/photo.png"
started 4 "home: is not empty and holds no run, but photo.png. Hint: name a new or an empty folder by --out" train "$small" --out "$scratch/home"
refused 4 "holds no run, but photo.png" train "$small" --out "$scratch/home" --resume auto
refused 4 "holds no run, but photo.png" submit "$small" --scheduler slurm --nodes 1 --out "$scratch/home" --dry-run
refused 4 "home: is not an empty folder: photo.png lies in it" phantom "$scratch/home"
check "a folder of other things is left as it was" [ "$(ls -A "$scratch/home")" = photo.png ]
refused 2 "[train] no config is named" train
refused 2 "[train] no config is named" train --set train.lr=0.1
# The shortest way that it names is one.
phantom_line=$(grep -o "chexnet-train phantom .*" "$scratch/err.txt") train_line=$(grep -o "chexnet-train train configs/quickstart.yaml" "$scratch/err.txt")
check "it says how to make data" grep -qE "^chexnet-train phantom phantom --images [0-9]+ --size [0-9]+$" <<<"$phantom_line"
check "that config resolves, for data where that command puts them" eval '"$program" ${train_line#chexnet-train } --print-config | grep -qF "[phantom/Data_Entry_2017.csv]"'
check "and the one for ChestX-ray14 too" eval 'NIH=/n "$program" train configs/chexnet_densenet121.yaml --set model.weights=none --print-config | grep -qF "[/n/Data_Entry_2017.csv]"'
started 8 "absent.csv: cannot be read" "${T[@]}" --set data.manifest.path="$scratch/absent.csv"
refused 8 "160 of 160 images are missing" "${T[@]}" --set data.images=["$source_folder/docs"]
refused 8 "data.missing=skip" "${T[@]}" --set data.images=["$source_folder/docs"]
refused 8 "images of the train split are missing" "${T[@]}" --set data.images=["$source_folder/docs"] --set data.missing=skip
started 8 "No such file" "${T[@]}" --set data.images=["$scratch/nowhere"]
sed 's/Hernia/Herniaa/' "$phantom/Data_Entry_2017.csv" >"$scratch/label.csv"
started 3 "unknown finding 'Herniaa'" "${T[@]}" --set data.manifest.path="$scratch/label.csv"
head -n 1 "$phantom/train_val_list.txt" | cat - "$phantom/test_list.txt" >"$scratch/leak.txt"
refused 3 "is listed twice" "${T[@]}" --set data.test_list="$scratch/leak.txt" --set data.val_fraction=0
sed '2,40s/^\([^,]*,[^,]*,[^,]*,\)[0-9]*/\1777/' "$phantom/Data_Entry_2017.csv" >"$scratch/patients.csv"
refused 3 " in two splits, e.g. that of" "${T[@]}" --set data.manifest.path="$scratch/patients.csv"

# A damaged image: all ranks stop and name it, or it is skipped.
cp -r "$phantom/images" "$scratch/images"
victim=$(sed -n 5p "$phantom/train_val_list.txt")
head -c 300 "$phantom/images/$victim" >"$scratch/images/$victim"
for ranks in 1 2; do
  refused 3 "$victim: damaged PNG" train "$small" --out "$scratch/damaged-$ranks" --ranks $ranks --set data.images=["$scratch/images"] --set data.val_fraction=0
done
check "data.corrupt=skip goes on" "$program" train "$small" --out "$scratch/skip" --set data.images=["$scratch/images"] --set data.corrupt=skip --set data.val_fraction=0 --set train.max_steps=20 2>"$scratch/log"
check "and names what it skipped" grep -q "$victim.*(skipped)" "$scratch/skip/log/rank-000.txt"

# Containers.
check "a pack" "$program" pack "$small" --out "$scratch/set.pack" 2>"$scratch/log"
check "records" "$program" pack "$small" --out "$scratch/records" --format tfrecord --per-shard 40 2>"$scratch/log"
refused 2 "holds images of 36 pixels (antialias), the run asks for 48" "${T[@]}" --set data.images=["$scratch/set.pack"] --set data.resize=48
refused 2 "is no TFRecord shard" "${T[@]}" --set data.pipeline=new
refused 2 "shards for 5 ranks" train "$small" --out "$scratch/run5" --ranks 5 --set train.batch=10 --set data.images=["$scratch/records"] --set data.pipeline=new --set launch.mpi_args=[--oversubscribe]
mkdir -p "$scratch/mixed/images" && ln -s "$scratch/mixed" "$scratch/link"
refused 2 "finds each image twice" pack "$small" --out "$scratch/link/images/../set.pack" --set data.images=["$phantom/images","$scratch/mixed"]
refused 2 "finds each image twice" pack "$small" --out "$scratch/mixed" --format tfrecord --set data.images=["$scratch/mixed"]
refused 4 "exists and holds other images" pack "$small" --out "$scratch/set.pack" --set data.resize=40
refused 4 "of other images or labels" pack "$small" --out "$scratch/records" --format tfrecord --per-shard 30
refused 3 "1 of 160 images are damaged; the rest is done and kept" pack "$small" --out "$scratch/damaged.pack" --set data.images=["$scratch/images"]
head -c 20000 "$scratch/set.pack" >"$scratch/cut.pack"
started 3 "cut.pack: is cut off" "${T[@]}" --set data.images=["$scratch/cut.pack"]
echo "no pack" >"$scratch/none.pack"
refused 3 "none.pack: is not a pack" "${T[@]}" --set data.images=["$scratch/none.pack"]
mkdir "$scratch/cut"; head -c 5000 "$scratch/records/train-00000-of-00004" >"$scratch/cut/train-00000-of-00001"
refused 3 "train-00000-of-00001: record" "${T[@]}" --set data.images=["$scratch/cut"]
(cd "$phantom" && tar czf "$scratch/images.tar.gz" images); head -c 30000 "$scratch/images.tar.gz" >"$scratch/cut.tar.gz"
refused 3 "cut.tar.gz: " "${T[@]}" --set data.images=["$scratch/cut.tar.gz"]
refused 3 "[stage] " "${T[@]}" --set data.images=["$scratch/set.pack"] --set data.stage=/proc/nowhere
mkdir -p "$scratch/node"; ln -s "$scratch" "$scratch/node/chexnet-stage-$(id -u)"
refused 3 "cannot be trusted" "${T[@]}" --set data.images=["$scratch/set.pack"] --set data.stage="$scratch/node"
refused 2 "data.train_crop=resized cuts from the original" "${T[@]}" --set data.images=["$scratch/set.pack"] --set data.train_crop=resized
exec 9>"$scratch/.locked.pack.lock"; flock 9
refused 4 "another pack writes there now" pack "$small" --out "$scratch/locked.pack"
exec 9>&-
(cd "$phantom" && tar cf "$scratch/whole.tar" images); head -c "$(($(tar tvRf "$scratch/whole.tar" | sed -n 's/^block \([0-9]*\): \*\*.*/\1/p' | head -n 1) * 512))" "$scratch/whole.tar" >"$scratch/endless.tar"
refused 3 "endless.tar: the archive stops without its end mark" "${T[@]}" --set data.images=["$scratch/endless.tar"]
mkdir "$scratch/twice"; cp "$phantom/images/$victim" "$scratch/twice"
refused 3 "is in two places" "${T[@]}" --set data.images=["$scratch/twice","$phantom/images"]
refused 2 "names no bucket" "${T[@]}" --set data.images=[s3://]
refused 2 "holds a user name or a password" "${T[@]}" --set data.images=[s3://bucket/x] --set data.s3.endpoint=https://a:b@host
refused 2 "is no URL" "${T[@]}" --set data.images=[s3://bucket/x] --set data.s3.endpoint=nonsense
check "a pack trains" "$program" train "$small" --out "$scratch/from-pack" --set data.images=["$scratch/set.pack"] --set train.max_steps=2 --set eval.splits=[] 2>"$scratch/log"
for pipeline in old new; do
  check "pipeline $pipeline trains on 2 ranks" "$program" train "$small" --out "$scratch/pipeline-$pipeline" --ranks 2 --set data.pipeline=$pipeline --set data.images=["$scratch/records"] --set train.max_steps=2 --set eval.splits=[] 2>"$scratch/log"
done
"$program" bench pipelines --shards "$scratch/records" --ranks 1,2 --resize 36 --crop 32 --batch 4 --steps 2 --json 2>"$scratch/log" >"$scratch/json"
check "bench pipelines measures all three on each number of ranks" look 'assert sorted((r["pipeline"], r["ranks"]) for r in a["results"]) == [(p, n) for p in ("global", "new", "old") for n in (1, 2)] and all(r["images_per_s"] > 0 for r in a["results"])' "$scratch/json"
refused 2 "shards for 99 ranks: data.pipeline new gives each rank its own files" bench pipelines --shards "$scratch/records" --ranks 1,99
"$program" bench loader "$small" --set data.images=["$scratch/records"] --workers 0,1 --batch 8 --count 8 --rounds 1 --json 2>"$scratch/log" >"$scratch/json"
check "bench loader takes a config, and loads its training images" look "assert a['sources'][0]['images'] == $(grep -c ',train$' "$scratch/from-pack/split.csv")" "$scratch/json"
refused 2 "nothing to load. Hint: a config, or --images FOLDER" bench loader
check "bench run measures" "$program" bench run "$small" --steps 2 --set train.batch=8 2>"$scratch/log" >"$scratch/out"
check "and names the limit" grep -qE "^limited by: (disk|decode|augmentation|copy|compute|communication|unknown)" "$scratch/out"
check "status names that of a run" grep -qE "^limited by: (data|compute|communication)" <<<"$("$program" status "$scratch/from-pack" 2>"$scratch/log")"
check "also as JSON" python3 -c "
import json, sys
limit = json.load(sys.stdin)[0]['limit']
assert limit['seconds'] > 0 and limit['steps'] == 2 and limit['advice'] and limit['limit'] != 'disk', limit" <<<"$("$program" status "$scratch/from-pack" --json 2>"$scratch/log")"
check "inspect finds the damaged image" bash -c "'$program' inspect '$small' --set data.images=['$scratch/images'] --json 2>/dev/null | grep -q '\"damaged\":\[\"'"

# Run folders and checkpoints.
one=(--set train.max_steps=2 --set eval.splits=[] --set data.val_fraction=0)
check "no start so far left a folder" [ ! -e "$scratch/run" ]
shared_run plain "$scratch/run" || exit 1
sum=$(sha256sum "$(weights "$scratch/run")")
locked=$(stat -c %Y-%i "$scratch/run/.lock")
started 4 "holds a run already" "${T[@]}" "${one[@]}"
refused 4 "holds a run already" "${T[@]}" "${one[@]}" --dry-run
check "a refused start leaves the run's lock as it is" [ "$(stat -c %Y-%i "$scratch/run/.lock")" = "$locked" ]
for ranks in 1 2; do refused 4 "kept.yaml: is no folder" train "$small" --out "$scratch/kept.yaml" --set train.batch=8 --ranks $ranks; done
"$program" "${T[@]}" "${one[@]}" --resume auto --timeline "$scratch/none.json" 2>"$scratch/err.txt" >/dev/null
check "a run that is complete says that it recorded no timeline" grep -q "none.json: not written, for this start made no step" "$scratch/err.txt"
for refusal in "4 holds a run already" "2 train.lr: 0.001 -> 0.5 --resume auto --set train.lr=0.5"; do
  refused "${refusal%% *}" "$(sed 's/^. //; s/ --resume.*//' <<<"$refusal")" "${T[@]}" "${one[@]}" --set train.batch=8 --ranks 4 $(grep -o -- '--resume .*' <<<"$refusal")
  check "before mpirun starts a rank" bash -c "! grep -q 'starting 4 ranks' '$scratch/err.txt'"
done
refused 4 "no checkpoint to resume from" train "$small" --out "$scratch/new" --resume yes --ranks 2 --set train.batch=8
check "also one without a checkpoint" bash -c "! grep -q 'starting 2 ranks' '$scratch/err.txt'"
started 4 "no checkpoint to resume from" train "$small" --out "$scratch/new" --resume yes
refused 2 "train.lr: 0.001 -> 0.5" "${T[@]}" "${one[@]}" --resume auto --set train.lr=0.5
head -n 60 "$phantom/train_val_list.txt" >"$scratch/fewer.txt"
refused 4 "another training split" "${T[@]}" "${one[@]}" --resume auto --set data.train_list="$scratch/fewer.txt"
refused 2 "--resume never is not known" "${T[@]}" --resume never
refused 4 "no checkpoint here" evaluate "$scratch/images"
for folder in "$scratch/images" "$scratch/nowhere"; do
  for command in status evaluate; do refused 4 "$folder: " $command "$folder"; done
done
refused 4 "the config says resnet50" evaluate "$scratch/run" --set model.arch=resnet50
refused 4 "preprocessing" evaluate "$scratch/run" --set data.crop=30
refused 4 "do not fit this network" train "$small" --out "$scratch/other" --set model.arch=resnet50 --set model.weights="$(weights "$scratch/run")"
refused 4 "absent.safetensors: no such file. Hint: scripts/reference/convert_weights.py torchvision:densenet121" train "$small" --out "$scratch/other2" --set model.weights="$scratch/absent.safetensors"
printf 'not weights at all' >"$scratch/bad.safetensors"
refused 4 "bad.safetensors: header length" train "$small" --out "$scratch/other3" --set model.weights="$scratch/bad.safetensors"
{ flock 9; refused 4 "in use by" "${T[@]}" "${one[@]}" --resume auto; } 9>>"$scratch/run/.lock"
check "nothing of the run was touched" [ "$sum" = "$(sha256sum "$(weights "$scratch/run")")" ]
: >"$scratch/file"
refused 4 "file: is no folder" train "$small" --out "$scratch/file/run"

(ulimit -s 64; "$program" phantom "$scratch/narrow" 2>"$scratch/err.txt"); rc=$?
check "a small stack: exit 5, which limit" test "$rc $(grep -c 'a stack may have 64 KiB.*ulimit -s' "$scratch/err.txt")" = "5 1"
check "and help is given" bash -c "ulimit -s 64; '$program' --help >/dev/null"
mkdir "$scratch/gone"
(cd "$scratch/gone" && rmdir "$scratch/gone" && "$program" config >"$scratch/out.txt" 2>"$scratch/err.txt"); rc=$?
check "a working folder that was removed: exit 2" test "$rc $(grep -c 'the working folder was removed' "$scratch/err.txt")" = "2 1"

# A limit of file sizes is an error of the write, not a signal.
(ulimit -f 16; "$program" pack "$small" --out "$scratch/limited.pack" >"$scratch/out.txt" 2>"$scratch/err.txt"); rc=$?
check "a limit of file sizes: exit 4, which file and why" test "$rc $(grep -c 'limited.*File too large' "$scratch/err.txt")" = "4 1"
check "and nothing stays" test -z "$(find "$scratch" -name '*limited*')"

# A full disk: a small file system made here, where this user may make one.
if [ "$(id -u)" = 0 ] && mkdir "$scratch/disk" && mount -t tmpfs -o size=120m tmpfs "$scratch/disk" 2>/dev/null; then
  refused 4 "No space left on device" train "$small" --out "$scratch/disk/run" --set train.max_steps=4 --set checkpoint.every_steps=2 --set checkpoint.keep=9 --set eval.splits=[] --set data.val_fraction=0
  check "the last good checkpoint is named, and how to go on" grep -qE "No space left.*; last good checkpoint: step-00000002; resume with: .*--out $scratch/disk/run .*--resume auto" "$scratch/err.txt"
  check "no half-written checkpoint stays" [ -z "$(find "$scratch/disk/run/checkpoints" -name '.*tmp')" ]
  umount "$scratch/disk"
  mount -t tmpfs -o size=64k tmpfs "$scratch/disk"; head -c 65536 /dev/zero >"$scratch/disk/full"
  "$program" train "$small" --out "$scratch/beside" --set train.max_steps=1 --set eval.splits=[] --set run.prometheus="$scratch/disk" 2>"$scratch/err.txt"; rc=$?
  check "a full disk of run.prometheus ends no run (exit $rc), and the hint names the key" eval '[ $rc = 0 ] && grep -q "write elsewhere with run.prometheus. The run goes on" "$scratch/err.txt"'
  "$program" train "$small" --out "$scratch/timed" --set train.max_steps=1 --set eval.splits=[] --timeline "$scratch/disk/t.json" 2>"$scratch/err.txt"; rc=$?
  check "nor does one of a timeline (exit $rc)" eval '[ $rc = 0 ] && grep -q "t.json.*write elsewhere with --timeline" "$scratch/err.txt"'
  refused 4 "No space left on device" phantom "$scratch/disk/set" --images 4 --size 32
  check "no half-made phantom stays" test ! -e "$scratch/disk/set"
  umount "$scratch/disk"
  mount -t tmpfs -o ro tmpfs "$scratch/disk"
  refused 4 "Read-only file system. Hint: choose a writable folder" train "$small" --out "$scratch/disk/run"
  umount "$scratch/disk"
else
  echo "skipped: no tmpfs of our own for the full and the read-only disk"
fi

# Processes that do not know each other.
SLURM_STEP_NUM_TASKS=2 started 5 "srun --mpi=pmix" "${T[@]}"
WORLD_SIZE=2 LOCAL_RANK=0 started 5 "torchrun" "${T[@]}"
[ -e /dev/nvidiactl ] || refused 5 "sees no GPU" train "$small" --out "$scratch/gpu" --set launch.device=cuda --ranks 1
printf 'image,label:A,prob:A\nx,1,0.5\nx,0,0.2\n' >"$scratch/p.csv"
refused 3 "p.csv:3: the image of this row appears twice, first on line 2" evaluate --predictions "$scratch/p.csv"
printf 'image,label:A,prob:A\nx,1,0.5\ny,0,0.2\n' >"$scratch/once.csv"
printf 'image,label:A,label:A,prob:A\nv,1,0,0.5\nw,0,1,0.2\n' >"$scratch/doubled.csv"
refused 3 "doubled.csv:1: finding 'A' appears twice. Hint: each finding has one column of labels" evaluate --predictions "$scratch/doubled.csv"
for other in --against --choose-on; do
  refused 3 "doubled.csv:1: finding 'A' appears twice" evaluate --predictions "$scratch/once.csv" $other "$scratch/doubled.csv"
done
refused 2 "one rank has nobody to exchange with. Hint: --ranks 2" bench allreduce
refused 2 "launch.time_limit: 'soon' is no time" train "$small" --set launch.time_limit=soon --out "$scratch/limit"
refused 2 "'launch.network' = 'ether' is not known. Hint: auto, ib" train "$small" --set launch.network=ether --out "$scratch/network"
echo "n1 slot=2" >"$scratch/hosts"
refused 2 "hosts:1: 'slot=2' is not known" train "$small" --hostfile "$scratch/hosts" --out "$scratch/elsewhere"
mkfifo "$scratch/pipe"
for file in "$scratch/pipe" /dev/zero; do
  refused 2 "$file: is no regular file" train "$small" --hostfile "$file" --out "$scratch/elsewhere"
  refused 2 "$file: is no regular file" submit "$small" --site "$file" --dry-run
  CHEXNET_SITE=$file refused 2 "$file: is no regular file" submit "$small" --dry-run
  refused 2 "$file: is no regular file" doctor --acceptance "$file"
  PBS_JOBID=1 PBS_NODEFILE=$file refused 2 "PBS_NODEFILE=$file: is no regular file" train "$small" --out "$scratch/elsewhere"
  LSB_JOBID=1 LSB_DJOB_HOSTFILE=$file refused 2 "LSB_DJOB_HOSTFILE=$file: is no regular file" train "$small" --out "$scratch/elsewhere"
  JOB_ID=1 SGE_TASK_ID=1 PE_HOSTFILE=$file refused 2 "PE_HOSTFILE=$file: is no regular file" train "$small" --out "$scratch/elsewhere"
done

# An option without a value would count as none, or take the next word for one.
for option in --out --resume --timeline --steps --hostfile --set; do
  refused 2 "$option: is empty. Hint: give a value, or leave the option out" train "$small" $option ''
  refused 2 "$option: is empty. Hint: give a value, or leave the option out" train "$small" $option= --print-config
done
refused 2 "--name: is empty" submit "$small" --scheduler slurm --name= --dry-run
refused 2 "--out: is empty" predict "$scratch/run" "$phantom/images" --out ''
refused 2 "--out: is empty" report "$scratch/run" --out ''
refused 2 "--ranks: is empty" bench allreduce --ranks= 2
refused 2 "an argument: is empty" evaluate ''
refused 2 "a quote is not closed" doctor --mpi-args "'"
check "an argument of mpirun may end with =" eval '"$program" bench allreduce --ranks 2 --dry-run --mpi-args "--mca a=" 2>/dev/null | grep -q -- "--mca a= "'
for seed in -1 18446744073709551616 99999999999999999999999; do
  refused 2 "$seed is no whole number from 0 to 2^64 - 1" evaluate --predictions "$scratch/p.csv" --seed $seed
done
refused 2 "excludes" evaluate --predictions "$scratch/p.csv" --ranks 2
for more in "--json --json" "--json train" "--spdx"; do
  # shellcheck disable=SC2086  # several words
  refused 2 "--version: is followed by something else" --version $more
done

# Endless, and given on purpose.
refused 2 "/dev/full: larger than 256 KiB" train /dev/full
refused 2 "/dev/full: larger than 256 KiB" submit "$small" --site /dev/full --dry-run

# A batch system whose variables make no sense.
LSB_JOBID=5 LSB_MCPU_HOSTS="n1 2 n2" refused 2 "LSB_MCPU_HOSTS: 'n2' has no slots" "${T[@]}"
LSB_JOBID=5 LSB_HOSTS="n1,n1;n2" refused 2 "LSB_HOSTS: 'n1,n1;n2' is no name of a host" "${T[@]}"
SLURM_JOB_ID=5 SLURM_NTASKS=-4 refused 2 "SLURM_NTASKS: '-4' is no number from 1 to" "${T[@]}"
mkdir "$scratch/flux"
printf '#!/bin/sh\necho "n[1-100000000]"\n' >"$scratch/flux/flux"; chmod +x "$scratch/flux/flux"
PATH=$scratch/flux:$PATH FLUX_URI=x refused 2 "'n[1-100000000]' is no name of a host" "${T[@]}"
printf '#!/bin/sh\nexec sleep 100\n' >"$scratch/flux/flux"
PATH=$scratch/flux:$PATH FLUX_URI=x refused 2 "flux hostlist --expand local: names no host" "${T[@]}"
printf 'n1\nn2\n' >"$scratch/hosts"
refused 2 "launch.min_hosts=3: the run has 2 hosts" train "$small" --hostfile "$scratch/hosts" --set launch.min_hosts=3 --out "$scratch/elsewhere"
finish
