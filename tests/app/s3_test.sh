#!/usr/bin/env bash
# s3:// against a server on loopback that checks signatures: the same bytes as the local folder for every container,
# through hundreds of requests with injected faults; credentials stay out of logs.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
work=$scratch
server=''
mkdir -p "$work/buckets/xrays"
"$program" phantom "$work/set" --images 100 --size 64 >/dev/null 2>&1
config=$work/cfg.yaml
data_config "$work/set" 48 40 >"$config"
pack() { "$program" pack "$config" --out "$@"; }
check "pack from the folder" pack "$work/local.pack" --set data.images="[$work/set/images]"
check "records from the folder" pack "$work/records" --format tfrecord --per-shard 20 --set data.images="[$work/set/images]"
mkdir "$work/buckets/xrays/plain images" && cp "$work"/set/images/* "$work/buckets/xrays/plain images/"
mv "$work/buckets/xrays/plain images" "$work/buckets/xrays/plain+images & more"
cp -r "$work/records" "$work/buckets/xrays/records"
rm -f "$work"/buckets/xrays/records/*00000*.index  # one must be read through
mkdir "$work/buckets/xrays/packs" && cp "$work/local.pack" "$work/buckets/xrays/packs/a.pack"
mkdir "$work/buckets/xrays/archives" && (cd "$work/set" && tar czf "$work/buckets/xrays/archives/images_001.tar.gz" images)

serve() {  # serve FAULTS
  [ -z "$server" ] || kill $server 2>/dev/null; rm -f "$work/port"
  python3 tests/support/s3_server.py "$work/buckets" --port-file "$work/port" --faults "$1" --log "$work/log" & server=$!
  await "the server listens" [ -s "$work/port" ]
  export AWS_ENDPOINT_URL="http://127.0.0.1:$(cat "$work/port")"
}
export AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=secret/with+signs XDG_CACHE_HOME=$work/cache
pixels() {  # pixels PACK
  python3 -c 'import json, struct, sys
pack = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(pack[json.loads(pack[16:16 + struct.unpack("<I", pack[8:12])[0]])["data_offset"]:])' "$1"
}
same() {  # same NAME PLACE [more]
  local name=$1 place=$2; shift 2
  rm -f "$work/s3.pack"
  pack "$work/s3.pack" --set data.images="[$place]" "$@" >"$work/out" 2>&1
  if [ "$name" = packs ]; then  # the source of this pack is a pack: only pixels can be equal
    pixels "$work/local.pack" >"$work/a" && pixels "$work/s3.pack" >"$work/b" && cmp "$work"/{a,b} || fail "s3 $name differs"
  else
    cmp -s "$work/local.pack" "$work/s3.pack" || { cat "$work/out"; fail "s3 $name differs from the folder"; }
  fi
}
serve 0
for place in "plain+images & more" records packs archives; do same "$place" "s3://xrays/$place"; done

archive=$work/buckets/xrays/archives/images_001.tar.gz
check "the kept index of an object names its ETag" grep -rql "^chexnet-index 3 tar.gz .*$(md5sum <"$archive" | cut -c 1-32)" "$work/cache/chexnet-train/index"

# An index that was uploaded with its archive is used. One that is older than the archive is not: there are other names at the
# same offsets.
mkdir "$work/twice" "$work/swapped" "$work/buckets/xrays/indexed"
read -r one other <<<"$(cd "$work/set/images" && echo $(ls | head -2))"
cp -r "$work/set/images" "$work/swapped/"
(cd "$work/swapped/images" && mv "$one" kept && mv "$other" "$one" && mv kept "$other")
tar cf "$work/twice/a.tar" -C "$work/set" images
pack "$work/twice/local.pack" --set data.images="[$work/twice/a.tar]" >/dev/null 2>&1
pack "$work/swapped/local.pack" --set data.images="[$work/swapped/images]" >/dev/null 2>&1
cmp -s "$work/local.pack" "$work/swapped/local.pack" && fail "to swap two names changes no pack"
cp "$work/twice/a.tar" "$work/twice/a.tar.index" "$work/buckets/xrays/indexed/"
same indexed s3://xrays/indexed
grep -rqs 'older than' "$work/out" && fail "an index of the same time is too old"
grep -rlq '^chexnet-index 3 tar ' "$work/cache/chexnet-train/index" && fail "the index beside an archive is not used"
tar cf "$work/buckets/xrays/indexed/a.tar" -C "$work/set" --transform "s,$one\$,kept,;s,$other\$,$one,;s,kept\$,$other," images
touch -d '+5 seconds' "$work/buckets/xrays/indexed/a.tar"
check "archives of equal size" test "$(stat -c %s "$work/twice/a.tar")" = "$(stat -c %s "$work/buckets/xrays/indexed/a.tar")"
rm "$work/s3.pack"; pack "$work/s3.pack" --set data.images='[s3://xrays/indexed]' >"$work/out" 2>&1
check "an index older than its archive is said not to be used" grep -q 'a.tar.index is older than s3://xrays/indexed/a.tar' "$work/out"
check "and names are those of the archive" cmp "$work/swapped/local.pack" "$work/s3.pack"

serve 0.25
for place in "plain+images & more" records packs archives; do
  same "$place" "s3://xrays/$place" --set data.s3.timeout_s=1 --set data.s3.attempts=20
done
enough() { [[ $(cat "$work/log") =~ requests=([0-9]+).*faults=([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 300 ] && [ "${BASH_REMATCH[2]}" -ge 60 ]; }
await "the server has seen 300 requests and made 60 faults" enough  # it writes their numbers now and then

# Training through the threads that read ahead: the same weights as from the folder.
train() {
  "$program" train "$config" --out "$1" --set data.images="[$2]" --set model.weights=none --set train.batch=8 --set train.max_steps=3 --set eval.splits=[] \
    --set data.val_fraction=0 --set launch.device=cpu --set launch.threads=1 --set data.s3.timeout_s=1 --set data.s3.attempts=20 --ranks 2 2>"$work/out"
}
train "$work/run-folder" "$work/set/images" && train "$work/run-s3" "s3://xrays/plain+images & more" || { cat "$work/out"; fail "training from s3 fails"; }
cmp -s "$(weights "$work/run-folder")" "$(weights "$work/run-s3")" || fail "training from s3 gives other weights"

serve 0
pack "$work/x.pack" --set data.images='[s3://xrays/nothing-here]' >"$work/out" 2>&1; [ $? = 8 ] || fail "an empty prefix is exit 8"
grep -q 'nothing is stored there' "$work/out" || fail "an empty prefix is not named"
AWS_SECRET_ACCESS_KEY=wrong pack "$work/x.pack" --set data.images='[s3://xrays/records]' >"$work/out" 2>&1; [ $? = 8 ] || fail "a wrong key is exit 8"
grep -q 'HTTP 403 SignatureDoesNotMatch' "$work/out" || { cat "$work/out"; fail "a wrong key is not named"; }
grep -rq 'secret/with' "$work/out" "$work/cache" 2>/dev/null && fail "a key was written down"
mkdir -p "$work/home/.aws"
printf '[default]\naws_access_key_id = nobody\n[site]\naws_access_key_id = AKTEST\naws_secret_access_key = secret/with+signs\n' >"$work/home/.aws/credentials"
(unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; export HOME=$work/home; pack "$work/profile.pack" --set data.images='[s3://xrays/records]' --set data.s3.profile=site >"$work/out" 2>&1) || { cat "$work/out"; fail "the profile's keys do not work"; }
# Ranks that mpirun started have no common folder where a result could be gathered.
mpi 2 pack "$config" --set data.images="[$work/set/images]" --out s3://xrays/new.pack >"$work/out" 2>&1; [ $? = 2 ] || { cat "$work/out"; fail "ranks of mpirun that write a pack are exit 2"; }
grep -qF "Hint: the same command without mpirun or srun, with --ranks 2" "$work/out" || fail "ranks of mpirun are not told what to do"
[ ! -e "$work/buckets/xrays/new.pack" ] || fail "a refused pack was begun"
by_mpirun() { mpi 1 pack "$config" --out "$@"; }
by_itself() { pack "$@" --ranks 2; }
for start in by_mpirun by_itself; do
  rm -f "$work/buckets/xrays/new.pack"
  $start s3://xrays/new.pack --set data.images="[$work/set/images]" >"$work/out" 2>&1 || { cat "$work/out"; fail "$start writes no pack"; }
  cmp "$work/local.pack" "$work/buckets/xrays/new.pack" || fail "the pack $start is another"
done
kill $server
pack "$work/y.pack" --set data.images='[s3://xrays/records]' --set data.s3.attempts=2 >"$work/out" 2>&1; [ $? = 9 ] || fail "no server is exit 9"
grep -q 'after 2 attempts' "$work/out" || fail "no server is not named"
finish
