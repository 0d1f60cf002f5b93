#!/usr/bin/env bash
# stdin and stdout of ranks that the program starts itself: a list that is piped in, a full disk, a reader that goes away, and a
# signal while a list is awaited.
set -u
source tests/lib.sh
shared_run plain "$scratch/run" || exit 1
cd "$scratch"
find "$phantom/images" -name '*.png' | sort | head -n 6 >list.txt
code() { "$@"; echo $?; }
both() { "$program" predict run "$@" --ranks 2 2>log; }

both - --out piped.csv <list.txt >/dev/null
"$program" predict run @list.txt --out named.csv 2>/dev/null >&2
check "rank 0 has the list that is piped in" cmp piped.csv named.csv
both - --json <list.txt >lines.json
check "six images and the whole of it" [ "$(wc -l <lines.json)" = 7 ]
refused 2 " cannot be read by ranks that this program starts" predict run @<(cat list.txt) --ranks 2
echo one >loop.txt
while read -r _; do "$program" evaluate run --ranks 2 >/dev/null 2>&1; echo two; done < <(cat loop.txt loop.txt) >turns.txt
check "others leave a loop's stdin alone" [ "$(wc -l <turns.txt)" = 2 ]

for ranks in 1 2; do
  check "a full disk under stdout, $ranks ranks: exit 4" [ "$("$program" predict run @list.txt --json --ranks $ranks 2>log >/dev/full; echo $?)" = 4 ]
  check "and the reason" grep -q "what should stand on stdout could not be written" log
  check "a reader that goes away, $ranks ranks: SIGPIPE" \
    [ "$("$program" predict run @list.txt --json --ranks $ranks 2>log | true; echo "${PIPESTATUS[0]}")" = 141 ]
  check "and no crash" sh -c '! grep -qiE "segmentation|signal code" log'
done

for ranks in 1 2; do
  "$program" train "$small" --out trained-$ranks --ranks $ranks --set train.max_steps=2 --set eval.splits=[test] 2>&1 | true
  check "a training goes on to its end, $ranks ranks" [ "${PIPESTATUS[0]}" = 0 ]
  check "all of it" grep -q '"event":"end"' trained-$ranks/metrics.jsonl
done

mkfifo fifo
exec 9<>fifo  # nobody writes, and the pipe has no end
reads_list() {  # one of this run's processes has opened its stdin by name
  local process
  for process in $(pgrep -f -- "predict run - --ranks $1 --out $scratch/none"); do
    if [ "$(readlink "/proc/$process/fd/"* | grep -cxF "$(readlink "/proc/$process/fd/0")")" -gt 1 ]; then return 0; fi
  done
  return 1
}
for ranks in 1 2; do
  "$program" predict run - --ranks $ranks --out "$scratch/none" <fifo 2>log >/dev/null 9>&- & waits=$!
  await "the list is awaited" reads_list $ranks
  kill -TERM $waits
  wait $waits
  check "TERM while a list is awaited, $ranks ranks: exit 75" [ $? = 75 ]
done
finish
