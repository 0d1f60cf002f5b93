#!/bin/bash
# pbs_stand_in.sh [-l WALL_SECONDS] [-k KILL_DELAY] [-n NODEFILE] [-i pbspro|torque] [-x MOM_HOST] SCRIPT [ARGS]
# Runs a #PBS script the way a MOM does: fresh login-like shell in $HOME, own session, PBS_* set, stdin /dev/null,
# output to NAME.oSEQ in the submit directory, SIGTERM to the session at walltime, SIGKILL KILL_DELAY later (exit 271 / 265).
# -x HOST: run on a make-believe host of netns_up.sh. Ignores resource requests: give the node file yourself.
set -u
W=3600 K=10 NF= I=pbspro X= ; while getopts l:k:n:i:x: o; do case $o in l) W=$OPTARG;; k) K=$OPTARG;; n) NF=$OPTARG;; i) I=$OPTARG;; x) X=$OPTARG;; *) exit 2;; esac; done; shift $((OPTIND-1))
S=$(realpath "$1"); shift; SUB=$PWD SEQ=${PBS_STAND_IN_SEQ:-$$}; ID=$SEQ.stand-in
NAME=$(sed -n 's/^#PBS[ \t]\+-N[ \t]\+\([^ \t]*\).*/\1/p' "$S" | head -1); NAME=${NAME:-$(basename "$S")}
T=$(mktemp -d); cp "$S" "$T/$ID.SC"; if [ -n "$NF" ]; then cp "$NF" "$T/$ID"; else hostname >"$T/$ID"; fi
E=(HOME="$HOME" USER="$(id -un)" LOGNAME="$(id -un)" SHELL=/bin/bash PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="$T"
   PBS_JOBID="$ID" PBS_JOBNAME="$NAME" PBS_NODEFILE="$T/$ID" PBS_O_WORKDIR="$SUB" PBS_O_HOST="$(hostname)" PBS_O_HOME="$HOME"
   PBS_O_LOGNAME="$(id -un)" PBS_O_PATH="$PATH" PBS_O_SHELL=/bin/bash PBS_O_QUEUE=batch PBS_QUEUE=batch PBS_ENVIRONMENT=PBS_BATCH PBS_TASKNUM=1 PBS_NODENUM=0)
if [ "$I" = torque ]; then E+=(PBS_NUM_NODES="$(sort -u "$T/$ID" | wc -l)" PBS_NUM_PPN="$(sort "$T/$ID" | uniq -c | awk 'NR==1{print $1}')" PBS_NP="$(wc -l <"$T/$ID")" PBS_WALLTIME="$W" PBS_VNODENUM=0 PBS_MOMPORT=15003 PBS_VERSION=TORQUE-stand-in)
else E+=(NCPUS="$(sort "$T/$ID" | uniq -c | awk 'NR==1{print $1}')" OMP_NUM_THREADS=1 PBS_JOBDIR="$HOME" PBS_MOMPORT=15003); fi
[ -n "${PBS_STAND_IN_EXTRA-}" ] && read -ra A <<<"$PBS_STAND_IN_EXTRA" && E+=("${A[@]}")
R=(); [ -n "$X" ] && R=("$(dirname "$(realpath "$0")")/nsexec" "$X")
cd "$HOME"
setsid "${R[@]}" env -i "${E[@]}" NETNS_DIR="${NETNS_DIR:-/tmp/netns-$(id -u)}" bash "$T/$ID.SC" "$@" </dev/null >"$SUB/$NAME.o$SEQ" 2>&1 & p=$!
sess() { ps -eo pid=,sess= | awk -v s="$p" '$2==s{print $1}'; }
hit=0; t0=$SECONDS
while kill -0 $p 2>/dev/null; do sleep 0.2
  if [ $hit = 0 ] && [ $((SECONDS-t0)) -ge "$W" ]; then hit=1; t1=$SECONDS; echo "=>> PBS: job killed: walltime $((SECONDS-t0)) exceeded limit $W" >>"$SUB/$NAME.o$SEQ"; kill -TERM $(sess) 2>/dev/null; fi
  if [ $hit = 1 ] && [ $((SECONDS-t1)) -ge "$K" ]; then hit=2; kill -KILL $(sess) 2>/dev/null; fi
done
wait $p; rc=$?; rm -rf "$T"; echo "$ID rc $rc walltime_hit $hit output $SUB/$NAME.o$SEQ"; exit $rc
