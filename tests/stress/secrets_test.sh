#!/usr/bin/env bash
# Secrets stay where they are: keys of an object store (id, secret, session token), the key of pseudonyms and patients'
# ids and names go into each command, and everything that it writes or says is searched for them, unpacked and in all
# usual spellings. A process has in its environment what it needs and no more; a core file is its owner's alone.
source tests/lib.sh
checks=$source_folder/tests/stress/secrets_checks.py
given=$scratch/given work=$scratch/work  # what went in; what came out, which is searched
mkdir -p "$given/buckets/xrays" "$given/dicom" "$work/tmp" "$work/said" "$work/home" "$work/crash"
cp -r "$phantom/images" "$given/buckets/xrays/images"
export HOME=$work/home TMPDIR=$work/tmp XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
export AWS_ACCESS_KEY_ID=AKCANARY5ZQ8TR2M AWS_SECRET_ACCESS_KEY='canary/S3cret+Key/q7W&x'
export AWS_SESSION_TOKEN='canary+T0ken/v9=='
shared_before=$(ls -A /dev/shm)

# A site's own table, whose ids are record numbers; DICOM files with names; a key of pseudonyms; a list of all.
umask 077
python3 "$checks" make_secrets "$phantom" "$given"
python3 tests/support/s3_server.py "$given/buckets" --port-file "$given/port" \
  --key "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" 2>/dev/null & server=$!
await "the store" test -s "$given/port"
cat >"$work/site.yaml" <<YAML
data:
  manifest: {format: csv, path: [$given/table.csv], columns: {image: image, patient: who, findings: [Effusion]}}
  images: [s3://xrays/images]
  s3: {endpoint: "http://127.0.0.1:$(cat "$given/port")"}
  test_fraction: 0.3
  resize: 36
  crop: 32
privacy: {key: $given/privacy.key}
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 2}
eval: {batch: 16, splits: [test], examples: 2}
run: {log_every: 1}
launch: {device: cpu, threads: 1}
YAML

number=0
says() {  # says CODE ARGUMENTS...: the program ends with CODE; what it says is kept for the search
  local wanted=$1 rc=0; shift; number=$((number + 1))
  (cd "$work" && exec "$program" "$@") >"$work/said/$number" 2>&1 </dev/null || rc=$?
  check "$1 ends with $wanted (exit $rc)" [ "$rc" = "$wanted" ]
  [ "$rc" = "$wanted" ] || { grep -m 3 error "$work/said/$number"; tail -n 3 "$work/said/$number"; }
}
cd "$source_folder" || exit 1
says 0 train site.yaml --out run --ranks 2 --timeline timeline.json
says 0 evaluate run --out scores.csv --json
says 0 predict run s3://xrays/images "$given/dicom/00.dcm" --out predicted.csv --heatmaps maps
says 0 pack site.yaml --out set.pack
says 0 export run --out exported
says 0 report run
says 0 inspect site.yaml
says 0 doctor --collect run
says 0 submit --scheduler slurm site.yaml --dry-run --nodes 2
says 0 submit --scheduler pbs site.yaml --dry-run --sweep train.lr=1e-3,3e-4
says 0 status run
AWS_SECRET_ACCESS_KEY=canary/S3cret+Key/q7W\&x-wrong says 8 pack site.yaml --out no.pack
says 2 pack site.yaml --out no.pack --set \
  data.s3.endpoint="https://$AWS_ACCESS_KEY_ID:canary%2FS3cret%2BKey%2Fq7W%26x@127.0.0.1:1"

# A run that crashes, where its user wants core files: it is looked at while it runs, and then its remains.
environment_of() { tr '\0' '\n' <"/proc/$1/environ"; }
(ulimit -c unlimited; cd "$work/crash" && exec "$program" train ../site.yaml --out "$work/crash/run" --ranks 2 \
  --set train.max_steps=5000 --set train.epochs=5000 --set eval.every_epochs=0) >"$work/said/crash" 2>&1 & job=$!
await_step "$work/crash/run" 1 "$work/said/crash"
mapfile -t ranks < <(rank_processes "$work/crash/run")
check "two ranks run" [ ${#ranks[@]} = 2 ]
check "a rank that reads from the store has its keys in its environment" \
  grep -q '^AWS_SECRET_ACCESS_KEY=canary' <(environment_of "${ranks[0]}")
mkdir "$work/command_lines"
for process in $(pgrep -f -- "--out $work/crash/run"); do
  cp "/proc/$process/cmdline" "$work/command_lines/$process"
done
check "command lines of parent, mpirun and ranks are there to be searched" \
  [ "$(find "$work/command_lines" -type f | wc -l)" -ge 4 ]
kill -ABRT "${ranks[1]}"; wait $job; rc=$?
check "a rank that aborts ends the run with 5 (exit $rc)" [ $rc = 5 ]
core=$(find "$work/crash" -maxdepth 1 -name 'core*' | head -n 1)
if [ -n "$core" ]; then  # it holds all that the rank knew (SECURITY.md), so nobody else is to read it
  check "a core file is its owner's alone" [ "$(stat -c %a "$core")" = 600 ]
  if grep -qF "$AWS_SECRET_ACCESS_KEY" "$core"; then echo "note: the core file holds the keys"; fi
  rm -f "$work"/crash/core*
else
  echo "note: this machine writes no core files here"
fi

# Workers that read DICOM files need no key of an object store, and leave no core file.
if [ -x "$CHEXNET_BUILD/chexnet-dicom" ]; then
  (ulimit -c unlimited; cd "$work" && python3 "$checks" look_at_workers "$CHEXNET_BUILD/chexnet-dicom" "$given"); rc=$?
  check "chexnet-dicom and its workers have no keys in their environment" [ $rc = 0 ]
  check "a worker leaves no core file" [ -z "$(find "$work" -name 'core*' -type f)" ]
fi

kill $server
for name in $(comm -13 <(sort <<<"$shared_before") <(ls -A /dev/shm | sort)); do
  cp -r "/dev/shm/$name" "$work/said/" 2>/dev/null  # of another program's, it may be gone
done
search() { python3 tests/support/find_secrets.py "$given/secrets" "$@"; }
check "no secret in anything that was written or said" search "$work"

# The search finds what is planted: packed twice, in Base64 after other bytes, in percent escapes.
mkdir "$scratch/planted"
planted() {  # planted HOW: what stands on stdin
  cat >"$scratch/planted/file"
  check "a planted leak is found: $1" eval '! search "$scratch/planted" >/dev/null'
}
planted "plain" <<<"key=$AWS_ACCESS_KEY_ID."
planted "in Base64" < <(printf 'ab%sc' "$AWS_SESSION_TOKEN" | base64 -w 0)
planted "in a URL" <<<"http://h/?k=canary%2FS3cret%2BKey%2Fq7W%26x"
tar -C "$given" -czf "$scratch/inner.tar.gz" privacy.key
planted "in a tar.gz in a tar.gz" < <(tar -C "$scratch" -czf - inner.tar.gz)
echo key >"$scratch/planted/file"
check "and nothing where there is nothing" eval 'search "$scratch/planted" >/dev/null'
finish
