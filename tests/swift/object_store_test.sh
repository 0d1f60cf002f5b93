#!/usr/bin/env bash
# A real S3 server, OpenStack Swift: X-rays read from it as a folder, an archive and a pack, with tables and lists
# there too; results written to it; a run that lives there, killed and resumed on a machine with an empty disk; and
# what is said and kept when it does not answer, refuses or is full.
source tests/lib.sh
swift=$scratch/swift
chmod 755 "$scratch"
mkdir "$swift"
at_end() { "$source_folder/tests/support/swift_down.sh" "$swift"; }
endpoint=$(tests/support/swift_up.sh "$swift" "${SWIFT_PORT:-0}") || exit $?
xray=${CHEXNET_XRAY_DIR:-../shared/xray}/nih352
[ -d "$xray" ] || { echo "no real X-rays (set CHEXNET_XRAY_DIR): phantoms instead"; xray=$phantom; }
export AWS_ENDPOINT_URL=$endpoint AWS_ACCESS_KEY_ID=test:tester AWS_SECRET_ACCESS_KEY=testing
# Files go there and come back by Swift's own interface: nothing of ours takes part.
token=$(curl -si -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' "$endpoint/auth/v1.0" | tr -d '\r' |
  sed -n 's/^X-Auth-Token: //p')
# On a busy machine Swift may say 401, for a moment, when its cache of tokens is late: that alone is asked again.
swift_curl() {
  local code
  for _ in $(seq 8); do
    : >"$scratch/answer"
    code=$(curl -s -o "$scratch/answer" -w '%{http_code}' -H "X-Auth-Token: $token" "$@")
    [ "$code" = 401 ] || break
    sleep 5
  done
  [[ $code == 2* ]] && cat "$scratch/answer"
}
there=$endpoint/v1/AUTH_test
put() { swift_curl -T "$1" "$there/$2" >/dev/null; }       # put FILE OBJECT
get() { swift_curl "$there/$1" >"$2"; }                     # get OBJECT FILE
names() { swift_curl "$there/$1?prefix=${2:-}"; }           # names BUCKET [PREFIX]
for bucket in xrays results runs; do await "Swift makes a bucket: its parts start one after the other" swift_curl -X PUT "$there/$bucket"; done
machine() { mkdir -p "$scratch/$1"; export TMPDIR=$scratch/$1; }  # machine NAME: another local disk
machine first

# ---- reading
images=$scratch/images
mkdir "$images"
head -n 48 "$xray/test_list.txt" | tr -d '\r' | while read -r name; do cp "$xray/images/$name" "$images/"; done
ls "$images" >"$scratch/list.txt"
(cd "$scratch" && tar cf set.tar images)
for image in "$images"/*; do put "$image" "xrays/folder/${image##*/}"; done
put "$scratch/set.tar" xrays/tar/set.tar
put "$xray/Data_Entry_2017.csv" xrays/tables/Data_Entry_2017.csv
gzip -c "$xray/Data_Entry_2017.csv" >"$scratch/table.csv.gz" && put "$scratch/table.csv.gz" xrays/tables/table.csv.gz
put "$scratch/list.txt" xrays/tables/list.txt
head -n 3 "$scratch/list.txt" >"$scratch/exclude.txt" && put "$scratch/exclude.txt" xrays/tables/exclude.txt
cat >"$scratch/real.yaml" <<YAML
data:
  manifest: {path: $xray/Data_Entry_2017.csv}
  images: [$images]
  train_list: $scratch/list.txt
  exclude: $scratch/exclude.txt
  val_fraction: 0
  test_fraction: 0
  resize: 40
  crop: 32
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 3, epochs: 100}
run: {log_every: 1}
eval: {batch: 8, splits: []}
launch: {device: cpu, threads: 1}
YAML
losses() { grep -o '"loss":[^,}]*' "$1/metrics.jsonl"; }
train_on() {  # train_on NAME ARGUMENTS...: three steps, whose losses are those of the local folder
  local run=$scratch/$1 name=$1; shift
  "$program" train "$scratch/real.yaml" --out "$run" "$@" 2>"$scratch/log" || cat "$scratch/log"
  [ "$name" = local ] ||
    check "$name: the losses of the local folder" test "$(losses "$run")" = "$(losses "$scratch/local")"
}
train_on local
check "there are losses" test "$(losses "$scratch/local" | wc -l)" = 3
train_on folder --set 'data.images=[s3://xrays/folder]'
train_on tar --set 'data.images=[s3://xrays/tar]'
check "a pack is written" "$program" pack "$scratch/real.yaml" --out s3://xrays/pack/set.pack
"$program" pack "$scratch/real.yaml" --out "$scratch/set.pack" 2>/dev/null
get xrays/pack/set.pack "$scratch/came.pack"
check "the pack is that of a local file" cmp "$scratch/set.pack" "$scratch/came.pack"
check "two ranks write it together" "$program" pack "$scratch/real.yaml" --ranks 2 --out s3://xrays/two/set.pack
get xrays/two/set.pack "$scratch/two.pack"
check "it is the same" cmp "$scratch/set.pack" "$scratch/two.pack"
mpi 1 pack "$scratch/real.yaml" --out s3://xrays/alone/set.pack 2>"$scratch/log" || { cat "$scratch/log"; check "one rank of mpirun writes" false; }
train_on pack --set 'data.images=[s3://xrays/pack]'
tables=s3://xrays/tables
train_on tables --set "data.manifest.path=[$tables/Data_Entry_2017.csv]" --set "data.train_list=$tables/list.txt" \
  --set "data.exclude=$tables/exclude.txt"
train_on gzip --set "data.manifest.path=[$tables/table.csv.gz]"
refused 8 "HTTP 404 NoSuchKey" train "$scratch/real.yaml" --out "$scratch/no" --set "data.train_list=$tables/absent.txt"
refused 2 "is there, and is not known to be an output" pack "$scratch/real.yaml" --out s3://xrays/pack/set.pack

# ---- a run that lives there
quick=(--set checkpoint.every_steps=3 --set checkpoint.keep=2)
"$program" train "$small" "${quick[@]}" --out "$scratch/whole" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
place=s3://runs/killed/one
start() {
  "$program" train "$small" "${quick[@]}" --out "$@" >"$scratch/log" 2>&1 || { tail "$scratch/log"; return 1; }
}
last() { swift_curl "$there/runs/$1/checkpoints/last"; }
start_in() { exec "${slow[@]}" "$program" train "$small" "${quick[@]}" --out "$@"; }  # in the background: the process itself
# Images come slowly, so that it is there when it is looked for.
slow_images 300 "$scratch/slowly"
touch "$scratch/slowly"
start_in "$place" 2>"$scratch/killed.log" & run=$!
await "a checkpoint is there" eval '[ "$(last killed/one)" ] && [[ ! $(last killed/one) < step-00000006 ]]'
kill -9 $run; wait $run 2>/dev/null
check "it was killed with a checkpoint there" test -n "$(last killed/one)"
check "and was not at its end" test "$(last killed/one)" != step-00000024
machine second
check "another machine goes on with it" start "$place" --resume auto
for file in model optimizer; do
  get runs/killed/one/checkpoints/step-00000024/$file.safetensors "$scratch/$file"
  check "killed and resumed: $file of the run without a stop" \
    cmp "$scratch/$file" "$scratch/whole/checkpoints/last/$file.safetensors"
done
get runs/killed/one/metrics.jsonl "$scratch/metrics.jsonl"
check "it did begin from a checkpoint" test "$(grep -c '"event":"restart"' "$scratch/metrics.jsonl")" = 1
check "its metrics have every step" test "$(losses "$scratch" | wc -l)" = "$(losses "$scratch/whole" | wc -l)"
check "old checkpoints are gone" test "$(names runs killed/one/checkpoints/ | grep -c state.json)" -le 3
for file in report.html results.json config.yaml log/rank-000.txt predictions_test.csv split.csv; do
  check "$file is there" eval "names runs killed/one/ | grep -q '/$file\$'"
done
check "TensorBoard's files are there" eval "names runs killed/one/ | grep -q tfevents"
check "the working folder of a complete run is gone" test ! -e "$TMPDIR/chexnet-runs-$(id -u)/runs+killed+one"
refused 4 "holds a run already" train "$small" --out "$place"

# ---- commands on it
check "status reads it" eval "'$program' status $place --json 2>/dev/null | grep -q '\"step\":24'"
check "report reads it" "$program" report "$place" --out "$scratch/page.html"
"$program" evaluate "$scratch/whole" --out "$scratch/own.csv" >/dev/null 2>&1
quietly() { "$@" >/dev/null; }
check "evaluate reads and writes there" quietly "$program" evaluate "$place" --out s3://results/scores.csv
get results/scores.csv "$scratch/came.csv"
check "its scores are those of the local run" cmp "$scratch/own.csv" "$scratch/came.csv"
check "evaluate replaces what it wrote" quietly "$program" evaluate "$place" --out s3://results/scores.csv
image=$phantom/images/$(head -n 1 "$phantom/test_list.txt")
check "predict reads and writes there" "$program" predict "$place" "$image" --out s3://results/p.csv \
  --heatmaps s3://results/maps --heatmap-threshold 0
check "its rows are there" eval "swift_curl '$there/results/p.csv' | grep -q '^image,prob:'"
check "so is the list of heat maps" eval "names results maps/ | grep -q heatmaps.csv"
check "so are heat maps" test "$(names results maps/ | grep -c png)" = 14
refused 2 "was not written by this command" predict "$place" "$image" --out s3://results/scores.csv

# ---- one run at a time
start_in s3://runs/held --set train.max_steps=100000 2>"$scratch/held.log" & run=$!
await "a checkpoint is there" eval '[ "$(last held)" ]'
machine third
refused 4 "in use by process $run on" train "$small" "${quick[@]}" --out s3://runs/held --resume auto
kill -INT $run; wait $run
check "a stopped run ends with 75, all of it there" test $? = 75
check "and its place is free at once" start s3://runs/held --resume auto --set train.max_steps=1

start "$scratch/two" --set train.max_steps=4 --ranks 2
check "two ranks" start s3://runs/two --resume auto --set train.max_steps=4 --ranks 2
get runs/two/checkpoints/step-00000004/model.safetensors "$scratch/model"
check "the weights of two ranks in a folder" cmp "$scratch/model" "$(weights "$scratch/two")"
check "both logs" test "$(names runs two/log/ | wc -l)" = 2
check "heat maps of two ranks" quietly "$program" predict s3://runs/two "$images" --ranks 2 --out s3://results/two.csv \
  --heatmaps s3://results/two --heatmap-findings Effusion
check "all of them are there" test "$(names results two/ | grep -c png)" = 48
check "--resume takes the place too" quietly "$program" train "$small" "${quick[@]}" --resume s3://runs/two \
  --set train.max_steps=4 --ranks 2

# ---- faults
AWS_SECRET_ACCESS_KEY=wrong refused 8 "SignatureDoesNotMatch" train "$small" --out s3://runs/new
check "a start that was refused leaves nothing" test -z "$(names runs new)"
(
  export AWS_ACCESS_KEY_ID=test:reader AWS_SECRET_ACCESS_KEY=readonly
  refused 8 "HTTP 403 AccessDenied" train "$small" --out s3://runs/new
  refused 8 "HTTP 403" pack "$scratch/real.yaml" --out s3://results/x.pack
  exit "$failures"
) || failures=$?
refused 8 "NoSuchBucket" train "$small" --out s3://absent/run
refused 2 "is no place of a run" train "$small" --out s3://runs
quota() {
  local part
  for part in full full+segments; do swift_curl -X "$1" -H "X-Container-Meta-Quota-Bytes: $2" "$there/$part"; done
}
quota PUT 2000000  # Swift keeps the parts of objects in a bucket of their own
machine full
here=$TMPDIR/chexnet-runs-$(id -u)
refused 4 "not all of the run could be stored there; it is whole in $here" \
  train "$small" "${quick[@]}" --out s3://full/run
check "the server's own words" \
  grep -q "EntityTooLarge: Upload exceeds quota. Hint: the bucket or the" "$scratch/err.txt"
check "the local copy is whole" cmp "$(weights "$here/full+run")" "$(weights "$scratch/whole")"
check "no part of it stays" test -z "$(names full+segments)"
quota POST 2000000000
check "with room again the rest is sent" start s3://full/run --resume auto
get full/run/checkpoints/step-00000024/model.safetensors "$scratch/model"
check "and it is that run" cmp "$scratch/model" "$(weights "$scratch/whole")"

# The server dies while the run goes on, and for good.
machine down
start_in s3://runs/down --set data.s3.attempts=2 --set data.s3.timeout_s=2 2>"$scratch/down.log" & run=$!
await "a checkpoint is there" eval '[ "$(last down)" ]'
kill -KILL -- "-$(cat "$swift/proxy.pid")"
rm "$scratch/slowly"
wait $run; check "a server that died: exit 4" test $? = 4
here=$TMPDIR/chexnet-runs-$(id -u)/runs+down
check "the place of the local copy is said" grep -q "it is whole in $here" "$scratch/down.log"
check "which is whole" cmp "$(weights "$here")" "$(weights "$scratch/whole")"
tests/support/swift_up.sh --proxy "$swift"
machine third
check "another machine goes on from what had been sent" start s3://runs/down --resume auto
get runs/down/checkpoints/step-00000024/model.safetensors "$scratch/model"
check "to the same weights" cmp "$scratch/model" "$(weights "$scratch/whole")"
finish
