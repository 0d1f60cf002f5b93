# Sourced by the tests that run the program. CHEXNET_BUILD is the build folder (default: build/release). Works in a new scratch
# folder.
set -u
CHEXNET_BUILD=$(realpath -m "${CHEXNET_BUILD:-build/release}")
program=${CHEXNET_PROGRAM:-$CHEXNET_BUILD/chexnet-train}
source_folder=$PWD
scratch=$(mktemp -d)
export CHEXNET_SCRATCH=$scratch  # by which we know all that a test has started, even where its parents are gone
at_end() { :; }  # for a test's last commands
clean_up() {
  at_end
  { # shellcheck disable=SC2046 # processes
    kill -9 $(jobs -p) $(grep -lzFx "CHEXNET_SCRATCH=$scratch" /proc/[0-9]*/environ | cut -d / -f 3)
    wait
  } 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
export LC_ALL=C.UTF-8
export XDG_CONFIG_HOME=$scratch/config  # keys of pseudonyms
failures=0
export OMPI_MCA_btl_base_warn_component_unused=0
export OMP_WAIT_POLICY=passive  # tests share cores: a thread of LibTorch that spins takes another test's
root=(); [ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
slow=()  # the beginning of commands whose images come slowly: slow_images
mpi() { local n=$1; shift; "${slow[@]}" mpirun --map-by socket --oversubscribe "${root[@]}" -np "$n" "$program" "$@"; }

# What tests share is made once for a program, known by its and its plug-ins' size and time, and for this text; what was made
# for others is removed after an hour.
shared=$CHEXNET_BUILD/shared-by-tests/${program##*/}-$(stat -Lc %s-%Y "$program" "${program%/*}"/libchexnet_*.so 2>/dev/null | cksum | tr ' ' -)
shared+=-$(cat "${BASH_SOURCE[0]}" "${BASH_SOURCE[0]%lib.sh}support/forked_starts.c" 2>/dev/null | cksum | cut -d ' ' -f 1)
mkdir -p "${shared%/*}"
! mkdir "$shared" 2>/dev/null || find "${shared%/*}" -maxdepth 1 -path "${shared%-*-*-*}-[0-9]*" -mmin +60 -exec rm -rf {} +
made_once() {  # made_once PLACE COMMAND...: by the first test that asks, whole or not at all; COMMAND's last argument is where
  ( flock 9; [ -e "$1" ] || { rm -rf "$1.part"; "${@:2}" "$1.part" && mv -T "$1.part" "$1"; } ) 9>>"$1.lock"
}
phantom=${CHEXNET_PHANTOM:-$shared/phantom}
draw_phantom() { "$program" phantom "$1" --images 160 --size 64 2>/dev/null; }
[ -e "$phantom" ] || made_once "$phantom" draw_phantom
# A config for runs of seconds.
cat >"$scratch/small.yaml" <<YAML
data:
  manifest: {path: $phantom/Data_Entry_2017.csv}
  images: [$phantom/images]
  train_list: $phantom/train_val_list.txt
  test_list: $phantom/test_list.txt
  resize: 36
  crop: 32
  train_crop: random
  rotate_deg: 5
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 24, epochs: 100}
run: {log_every: 1}
eval: {batch: 8, splits: [test]}
launch: {device: cpu, threads: 1}
YAML
small=$scratch/small.yaml
# shared_run KIND FOLDER: a copy of a run that several tests begin with: plain of one rank, the others of two, which its config does not name.
declare -A shared_runs=(
  [plain]='train.max_steps=2 data.val_fraction=0 eval.splits=[]'
  [scored]='train.max_steps=14 data.val_fraction=0.3 eval.splits=[val,test] eval.sensitivity=0.8'
  [whole]='eval.splits=[] eval.every_epochs=0 checkpoint.every_steps=5')
train_shared() {  # train_shared KIND FOLDER
  local start=(mpi 2)
  [ "$1" != plain ] || start=("$program")
  # shellcheck disable=SC2046,SC2086 # a setting is one word
  "${start[@]}" train "$small" $(printf -- '--set %s ' ${shared_runs[$1]}) --out "$2" >"$scratch/shared.log" 2>&1 || { cat "$scratch/shared.log"; false; }
}
shared_run() { made_once "$shared/run-$1" train_shared "$1" && cp -r "$shared/run-$1" "$2"; }
# After fork_starts $forked, and so refused, starts the program as a fork of one that is loaded (support/forked_starts.c). Signals,
# and times of it, are the matter of real starts.
forked=
fork_starts() {
  local tool=$shared/forked_starts at=$scratch/starts
  forked=$program  # where nothing can be preloaded
  made_once "$tool" cc -O1 "$source_folder/tests/support/forked_starts.c" -o &&
    made_once "$tool.so" cc -O1 -shared -fPIC -DSERVER "$source_folder/tests/support/forked_starts.c" -ldl -o || return
  LD_PRELOAD=$tool.so "$program" "$at" </dev/null >"$scratch/starts.log" 2>&1 & disown
  until [ -S "$at" ] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
  forked=$scratch/chexnet-train
  printf '#!/bin/sh\nexec %q %q %q "$@"\n' "$tool" "$at" "$program" >"$forked" && chmod +x "$forked"
}

data_config() {  # data_config SET RESIZE CROP: a config of a phantom set
  cat <<YAML
data:
  manifest: {format: nih, path: "$1/Data_Entry_2017.csv"}
  images: ["$1/images"]
  train_list: "$1/train_val_list.txt"
  test_list: "$1/test_list.txt"
  resize: $2
  crop: $3
YAML
}
look=$(realpath "${BASH_SOURCE[0]%lib.sh}look.py")
look() { python3 "$look" "$@"; }  # look CODE FILE...: Python, to which a, b, ... are what the files hold
check() {  # check TEXT COMMAND...: the command succeeds
  local text=$1; shift
  if "$@"; then echo "ok: $text"; else echo "FAILED: $text"; failures=$((failures + 1)); fi
}
refused() {  # refused CODE PART ARGUMENTS...: the program exits with CODE and says PART on stderr
  local code=$1 part=$2 rc=0; shift 2
  "${forked:-$program}" "$@" >"$scratch/out.txt" 2>"$scratch/err.txt" </dev/null || rc=$?
  if [ "$rc" = "$code" ] && grep -qF -- "$part" "$scratch/err.txt"; then echo "ok: $part"; else
    echo "FAILED: exit $rc (wanted $code), wanted text: $part"; sed 's/^/  | /' "$scratch/err.txt" | tail -n 12; failures=$((failures + 1))
  fi
}
weights() { echo "$1/checkpoints/last/model.safetensors"; }
# await TEXT COMMAND...: looks 20 times a second until the command succeeds, for five minutes (CHEXNET_PATIENCE times as long where
# programs are slow). A wait in vain ends the test: what comes after it would mislead. Shows the end of the files in await_logs.
await() {
  local text=$1 end=$((SECONDS + 300 * ${CHEXNET_PATIENCE:-1})); shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then echo "FAILED: waited in vain: $text"; tail -n 20 "${await_logs[@]}"; exit 1; fi
    sleep 0.05
  done
}
await_logs=(/dev/null)
has_line() { grep -q -- "$2" "$1/metrics.jsonl"; }                                      # has_line RUN TEXT
await_step() { await_logs=("${@:3}"); await "$1 reaches step $2" has_line "$1" "\"step\":$2,"; }  # await_step RUN STEP LOG...
rank_processes() {  # rank_processes RUN [RANK]: those of its processes that mpirun started
  local process
  for process in $(pgrep -f -- "--out $1( |\$)"); do
    if grep -qzE "^OMPI_COMM_WORLD_RANK=${2:-[0-9]+}\$" "/proc/$process/environ" 2>/dev/null; then echo "$process"; fi
  done
}
no_process() {  # no_process RUN: none is left, or they are ending
  for _ in $(seq 100); do pgrep -f -- "--out $1( |\$)" >/dev/null || return 0; sleep 0.1; done
  return 1
}
is_told() {  # is_told PROCESS SIGNAL: the signal is there and waits, for the process is stopped or holds it back
  local name mask bit=$(($(kill -l "$2") - 1))
  while read -r name mask; do
    if [[ $name == S[ih][gd]Pnd: ]] && (((16#$mask >> bit) & 1)); then return 0; fi
  done <"/proc/$1/status"
  return 1
}
slow_images() {  # slow_images MS [FILE]: from now on `slow` makes each read of a PNG take so much longer, while FILE is there
  [ -e "$scratch/slow.so" ] || cc -shared -fPIC -O1 -o "$scratch/slow.so" "$source_folder/tests/support/slow_reads.c" -ldl || exit 1
  slow=(env SLOW_NAME=.png "SLOW_MS=$1" ${2:+"SLOW_WHILE=$2"} "LD_PRELOAD=$scratch/slow.so")
}
ends_alike() {  # ends_alike TEXT RUN_A RUN_B: last checkpoints are equal, byte for byte
  check "$1" cmp "$(weights "$2")" "$(weights "$3")"
  check "$1: optimizer too" cmp "$2/checkpoints/last/optimizer.safetensors" "$3/checkpoints/last/optimizer.safetensors"
}
# Tools of PyPI that a test looks at the program with, made once for a build folder; $tools is their bin.
python_tools() {  # python_tools NAME PACKAGE...: fails, with the reason, where PyPI is out of reach
  local place=$CHEXNET_BUILD/test-venv-$1; shift
  tools=$place/bin
  [ "$(cat "$place/made" 2>/dev/null)" != "$*" ] || return 0
  rm -rf "$place"
  { python3 -m venv "$place" && "$tools/pip" install --quiet --retries 1 "$@"; } >"$scratch/tools.log" 2>&1 ||
    { echo "no Python environment with $*: $(tail -n 1 "$scratch/tools.log")"; return 1; }
  echo "$*" >"$place/made"
}
finish() { [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }; }
