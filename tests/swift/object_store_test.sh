#!/usr/bin/env bash
# A real S3 server, OpenStack Swift: X-rays read from it as a folder, an archive and a pack, with tables and lists
# there too; results written to it; a run that rclone copies there, killed and resumed from the copy; and what is said and
# kept when it does not answer, refuses or is full.
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
for bucket in xrays results runs full full+segments; do await "Swift makes a bucket: its parts start one after the other" swift_curl -X PUT "$there/$bucket"; done

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

# ---- results, and a model from there
train_small() { "$program" train "$small" --set checkpoint.every_steps=3 --set checkpoint.keep=2 "$@"; }
whole=$scratch/whole
train_small --out "$whole" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
quietly() { "$@" >/dev/null; }
"$program" evaluate "$whole" --out "$scratch/own.csv" >/dev/null 2>&1
check "evaluate writes there" quietly "$program" evaluate "$whole" --out s3://results/scores.csv
get results/scores.csv "$scratch/came.csv"
check "its scores are those of a local file" cmp "$scratch/own.csv" "$scratch/came.csv"
check "evaluate replaces what it wrote" quietly "$program" evaluate "$whole" --out s3://results/scores.csv
image=$phantom/images/$(head -n 1 "$phantom/test_list.txt")
put "$(weights "$whole")" results/model.safetensors
check "predict reads a model there, and writes there" "$program" predict s3://results/model.safetensors "$image" --out s3://results/p.csv
"$program" predict "$(weights "$whole")" "$image" --out "$scratch/rows.csv" 2>/dev/null
get results/p.csv "$scratch/came.csv"
check "its rows are those of a local model" cmp "$scratch/rows.csv" "$scratch/came.csv"
refused 2 "was not written by this command" predict "$whole" "$image" --out s3://results/scores.csv

# ---- faults
AWS_SECRET_ACCESS_KEY=wrong refused 8 "SignatureDoesNotMatch" pack "$scratch/real.yaml" --out s3://results/x.pack
AWS_ACCESS_KEY_ID=test:reader AWS_SECRET_ACCESS_KEY=readonly refused 8 "HTTP 403 AccessDenied" pack "$scratch/real.yaml" --out s3://results/x.pack
refused 8 "NoSuchBucket" pack "$scratch/real.yaml" --out s3://absent/x.pack
for part in full full+segments; do swift_curl -X POST -H 'X-Container-Meta-Quota-Bytes: 10000' "$there/$part"; done
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp refused 4 "not stored there; the result is kept in $scratch/tmp" pack "$scratch/real.yaml" --out s3://full/x.pack
check "the server's own words" grep -q "EntityTooLarge: Upload exceeds quota. Hint: the bucket or the" "$scratch/err.txt"
check "the local copy is whole" cmp "$scratch/set.pack" "$(find "$scratch/tmp" -name x.pack)"
check "no part of it stays" test -z "$(names full+segments)"

# ---- a run that is copied there as docs/cluster.md says
command -v rclone >/dev/null || { echo "skipped: no rclone (scripts/setup --cluster-tests)"; finish; exit; }
unset AWS_CA_BUNDLE  # rclone 1.60 ends by it
export RCLONE_CONFIG_STORE_TYPE=s3 RCLONE_CONFIG_STORE_PROVIDER=Other RCLONE_CONFIG_STORE_ENV_AUTH=true \
  RCLONE_CONFIG_STORE_ENDPOINT=$endpoint RCLONE_CONFIG=$scratch/rclone.conf RCLONE_BWLIMIT=20M
copied() {  # copied NAME: the command
  # shellcheck disable=SC2016  # the command's own $1
  echo 'run.after_checkpoint=rclone sync --links --local-no-check-updated "$1" store:runs/'"$1 && echo >>$scratch/copies"
}
back() { (umask 077; rclone sync --links "store:runs/$1" "$scratch/$1-back"); }
sent() { names runs "$1/checkpoints/" | grep -c state.json; }
slow_images 300 "$scratch/slowly"
touch "$scratch/slowly"
start() { exec "${slow[@]}" "$program" train "$small" --set checkpoint.every_steps=3 --set checkpoint.keep=2 "$@"; }
start --set "$(copied killed)" --out "$scratch/killed" 2>"$scratch/killed.log" & run=$!
await_logs=("$scratch/killed.log")
await "a copy is whole" test -s "$scratch/copies"
await "another copy is under way" pgrep -f "rclone sync.*$scratch/killed/"
kill -9 $run; wait $run 2>/dev/null
rm "$scratch/slowly"
await "rclone ended with it" eval '! pgrep -f "rclone sync.*$scratch/killed/"'
check "the run comes back" back killed
check "not at its end" test ! -e "$scratch/killed-back/checkpoints/step-00000024"
check "its files are the user's own" test -z "$(find "$scratch/killed-back" -type f -perm /077)"
check "it goes on" train_small --out "$scratch/killed-back" --resume auto 2>"$scratch/log"
check "from a checkpoint" has_line "$scratch/killed-back" '"event":"restart"'
ends_alike "killed and resumed from the copy: the run without a stop" "$scratch/killed-back" "$whole"

train_small --set "$(copied one)" --out "$scratch/one" 2>"$scratch/log"; check "a run to its end" test $? = 0
check "comes back" back one
check "as it is here" diff -r --no-dereference -x '.*' -x log "$scratch/one" "$scratch/one-back"
check "its model scores" quietly "$program" evaluate "$scratch/one-back"

touch "$scratch/slowly"
RCLONE_RETRIES=1 RCLONE_LOW_LEVEL_RETRIES=1 start --set "$(copied down)" --out "$scratch/down" --json >"$scratch/json" 2>"$scratch/down.log" & run=$!
await "a checkpoint is there" eval '[ "$(sent down)" -ge 1 ]'
kill -KILL -- "-$(cat "$swift/proxy.pid")"
rm "$scratch/slowly"
wait $run; check "a server that dies ends no run" test $? = 0
check "what failed is counted" grep -q '"after_checkpoint_failures": *[1-9]' "$scratch/json"
check "its weights are whole" cmp "$(weights "$scratch/down")" "$(weights "$whole")"
finish
