#!/bin/bash
# lsf_stand_in.sh: bsub, bjobs and bkill of a make-believe LSF of this host, by the name that it is called with (links).
#   bsub <SCRIPT     reads -J -n -W -wa -wt -Q -o of the #BSUB lines; prints LSF's sentence; runs the job, or the tasks of an
#                    array one after another, in the background with LSB_* set, in a session of its own
#   bjobs … JOBID    "time_left,runtimelimit,run_time" as bjobs -noheader -o prints them
#   bkill [-s SIG] JOBID   INT, ten seconds later TERM, ten seconds later KILL; or SIG: to every process of the job
# The signal of -wa comes -wt before the limit; at the limit every process gets USR2, and KILL ten (LSF_GRACE) seconds later.
# An exit code of -Q starts the job again with the same number, and what the failed start printed is lost, as LSF documents it.
# Sources: IBM Spectrum LSF 10.1, bsub -W, -wa, -wt, -Q, -J and bkill; environment variables set for job execution.
# LSF_DIR holds the state. A minute of the script has LSF_MINUTE seconds (default 60), so that a test need not wait.
set -u
D=${LSF_DIR:?}; M=${LSF_MINUTE:-60}
processes() { ps -eo pid=,sess= | awk -v s="$1" '$2==s{print $1}'; }
signal() { local p; for p in $(processes "$1"); do kill "-$2" "$p" 2>/dev/null; done; }
option() { sed -n "s/^#BSUB $1 //p" "$2" | tail -n 1 | tr -d "\"'"; }
minutes() { awk -F: '{print NF == 2 ? $1 * 60 + $2 : $1 + 0}' <<<"$1"; }

run_once() {  # run_once SCRIPT JOB INDEX: one start of a task; its exit code
  local script=$1 job=$2 index=$3 began=$SECONDS limit warn=0 hit=0 killed=0 p rc
  limit=$(($(minutes "$(option -W "$script")") * M))
  [ -z "$(option -wa "$script")" ] || warn=$((limit - $(minutes "$(option -wt "$script")") * M))
  local hosts; hosts=$(hostname)
  LSB_JOBID=$job LSB_JOBINDEX=$index LSB_BATCH_JID=$job LSB_MCPU_HOSTS="$hosts $(option -n "$script")" LSB_HOSTS="$hosts" \
    setsid env --default-signal bash "$script" </dev/null >"$D/$job.$index.out" 2>&1 & p=$!
  echo "$p $(($(date +%s) + limit)) $limit" >"$D/$job.$index.running"
  while kill -0 "$p" 2>/dev/null; do
    sleep 0.2
    if [ "$warn" -gt 0 ] && [ $((SECONDS - began)) -ge "$warn" ]; then warn=0; signal "$p" "$(option -wa "$script")"; fi
    if [ "$hit" = 0 ] && [ $((SECONDS - began)) -ge "$limit" ]; then hit=1; signal "$p" USR2; fi
    if [ "$killed" = 0 ] && [ $((SECONDS - began)) -ge $((limit + ${LSF_GRACE:-10})) ]; then killed=1; signal "$p" KILL; fi
  done
  wait "$p"; rc=$?
  rm -f "$D/$job.$index.running"
  return "$rc"
}

run_job() {  # run_job SCRIPT JOB
  local script=$1 job=$2 name first=0 last=0 index rc starts
  name=$(option -J "$script")
  if [[ $name =~ \[([0-9]+)-([0-9]+)\]$ ]]; then first=${BASH_REMATCH[1]} last=${BASH_REMATCH[2]}; fi
  for ((index = first; index <= last; index++)); do
    starts=0
    while :; do
      starts=$((starts + 1))
      run_once "$script" "$job" "$index"; rc=$?
      echo "$index $rc $starts" >>"$D/$job.ends"
      case " $(option -Q "$script") " in *" $rc "*) : >"$D/$job.$index.out" ;; *) break ;; esac
    done
  done
  touch "$D/$job.done"
}

case $(basename "$0") in
  bsub)
    job=$(($(cat "$D/last" 2>/dev/null || echo 100) + 1)); echo "$job" >"$D/last"
    cat >"$D/$job.script"
    run_job "$D/$job.script" "$job" </dev/null >/dev/null 2>&1 &
    echo "Job <$job> is submitted to default queue <normal>." ;;
  bjobs)
    id=${*: -1}; index=0; [[ $id =~ \[([0-9]+)\] ]] && index=${BASH_REMATCH[1]}
    read -r _ end limit <"$D/${id%%[*}.$index.running" || exit 255
    left=$((end - $(date +%s)))
    printf '%d:%d L,%d.0/%s,%d second(s)\n' $((left / M / 60)) $((left / M % 60)) $((limit / M)) "$(hostname)" $((limit - left)) ;;
  bkill)
    how=''; if [ "$1" = -s ]; then how=$2; shift 2; fi
    read -r p _ <"$D/$1.0.running" || exit 255
    if [ -n "$how" ]; then signal "$p" "$how"; exit; fi
    for s in INT TERM KILL; do signal "$p" "$s"; for _ in $(seq 50); do [ -n "$(processes "$p")" ] || exit 0; sleep 0.2; done; done ;;
  *) sed -n '2,12s/^# //p' "$0" >&2; exit 2 ;;
esac
