#!/usr/bin/env bash
# A run's records, and how a resume uses them.
source tests/lib.sh
fork_starts
tiny=(--set train.max_steps=4 --set train.batch=16 --set data.val_fraction=0.3 --set eval.splits=[test] --set eval.batch=32 --set train.schedule=cosine)
run=$scratch/run
train() { "$forked" train "$small" "${tiny[@]}" --out "$run" "$@" 2>"$scratch/log"; }
says() { grep -qF -- "$1" "$scratch/log"; }
status() { "$forked" status "$run" 2>&1; }
events() { grep -c "\"event\":\"$1\"" "$run/metrics.jsonl"; }

# Found before anything is trained, and the folder stays free.
refused 2 "'eval.splits' = 'tset' is not known. Hint: one of 'test'" train "$small" --out "$run" --set eval.splits=[val,tset]
refused 2 "28 pixels are too few for densenet121, whose pools leave nothing of them. Hint: at least 29" train "$small" --out "$run" --set data.crop=28
refused 4 "nowhere: No such file or directory. Hint: name a file in a folder that is there" train "$small" --out "$run" --timeline "$scratch/nowhere/t.json"
check "a refused start leaves no folder" [ ! -e "$run" ]
run=$scratch/small
check "29 pixels are enough" train --set data.crop=29 --set train.max_steps=1 --set eval.splits=[]

# A run from weights, in a folder whose name is no UTF-8.
cp "$scratch/small/checkpoints/last/model.safetensors" "$scratch/start.safetensors"
run=$scratch/$(printf 'caf\351')
check "a folder named in another encoding" train --set model.weights="$scratch/start.safetensors" --set train.max_steps=2 --json >"$scratch/trained.json"
check "train's JSON names the images that were scored, as evaluate's does" look 'ours = a["results"]["test"]["split"]
assert len(ours["sha256"]) == 64 and ours["name"] == "test", ours' <(head -n 1 "$scratch/trained.json")
lines() { sed -n '/^.*AUROC on the test split/,$p' "$scratch/log"; }
check "a run ends in few lines: the AUROC table and the report" eval '[ "$(lines | wc -l)" -le 24 ] && tail -n 1 "$scratch/log" | grep -qa "/report.html$" && ! says "Operating points"'
check "inspect knows what each of its files is" look '
names = [f["name"] for f in a["files"]]
assert None not in names, a
assert {"report.html", "results.json", "checkpoints/best", "split.csv", "log/rank-*.txt", "predictions_*.csv"} <= set(names), names' <("$program" inspect --json "$run" || echo failed)
check "and its status as JSON" look 'a' <("$program" status --json "$run")
check "final scores name split, step and findings" grep -q '"event":"final","step":2,"split":"test","images":[0-9]*,"damaged":0,"missing":0,"weights":"best","best_step":2,.*"auroc":{"Atelectasis"' "$run/metrics.jsonl"
before=$(sha256sum "$run/metrics.jsonl" "$run"/checkpoints/*/state.json)
weights=(--set model.weights="$scratch/start.safetensors" --resume auto)
check "a finished run is complete" train "${weights[@]}" --set train.max_steps=2 --json >"$scratch/complete.json"
check "and gives no figures of what it did not do" look 'assert a["complete"] and a["step"] == 2 and "results" not in a, a
assert [a[k] for k in ("images_per_s", "peak_bytes", "train_s", "evaluate_s")] == [None] * 4, a' <(head -n 1 "$scratch/complete.json")
check "and says so" says "is complete at step 2: nothing is left to do"
check "and nothing was done" [ "$before" = "$(sha256sum "$run/metrics.jsonl" "$run"/checkpoints/*/state.json)" ]
refused 4 "nowhere: No such file or directory" evaluate "$run" --out "$scratch/nowhere/x.csv"

# More steps; the link `best` was left behind by a crash.
ln -sfn nowhere "$run/checkpoints/best"
check "more steps go on" train "${weights[@]}" --set train.epochs=5
check "another length of the cosine is said" says "train.epochs changed from 100 to 5 under train.schedule=cosine"
check "the report says where the weights came from" grep -q "weights from .*start.safetensors, sha256 .*; resumed from checkpoint step-00000002" "$run/report.html"
check "no command is said to repeat a run that a resume changed" eval '! grep -q "This repeats the run" "$run/report.html"'
check "results and checkpoint name the changes" look '
for changes in (a["resume_changes"], b["changes"]):
    assert {"step": 2, "what": "train.epochs", "before": "100", "after": "5"} in changes, changes' "$run"/{results,checkpoints/last/state}.json
best=$(look 'print("step-%08d" % a["best_step"])' "$run/checkpoints/last/state.json")
check "the model card says so too" grep -q "^| 2 | train.epochs | 100 | 5 |" "$run/model_card.md"
check "best is what the state says" [ "$(readlink "$run/checkpoints/best")" = "$best" ]
check "one line for each final score" [ "$(events final)" = 1 ]

# Another validation split: of one image, on which no AUROC is defined.
grep -vxFf <(tail -n 12 "$phantom/train_val_list.txt") "$phantom/train_val_list.txt" >"$scratch/train.txt"
tail -n 12 "$phantom/train_val_list.txt" >"$scratch/val12.txt"
tail -n 1 "$phantom/train_val_list.txt" >"$scratch/val1.txt"
run=$scratch/lists
lists=(--set data.train_list="$scratch/train.txt" --set eval.splits=[] --set data.allow_patient_leak=true)
check "a run with lists" train "${lists[@]}" --set data.val_list="$scratch/val12.txt" --set train.max_steps=2
check "goes on with another validation list" train "${lists[@]}" --set data.val_list="$scratch/val1.txt" --set train.max_steps=4 --resume auto
check "and says what starts afresh" says "the validation split is scored otherwise than the run did (images, labels, eval.findings, eval.crops or eval.by): best checkpoint, plateau and early stop start afresh"
check "an AUROC that is not defined is called so" says "mean AUROC not defined"
check "goes on with other scored findings" train "${lists[@]}" --set data.val_list="$scratch/val12.txt" --set eval.findings=[Mass] --set train.max_steps=5 --resume auto
check "and says so too" says "the validation split is scored otherwise"
check "goes on with nothing changed" train "${lists[@]}" --set data.val_list="$scratch/val12.txt" --set eval.findings=[Mass] --set eval.batch=7 --set train.max_steps=6 --resume auto
check "and keeps its best" [ "$(grep -c "scored otherwise" "$scratch/log")" = 0 ]
check "nothing is called nan" [ "$(grep -cw nan "$scratch/log")" = 0 ]

# The plateau schedule watches the loss after the warm-up, of 30 images here, which is two steps: no loss before is remembered.
run=$scratch/plateau
plateau=(--set train.schedule=plateau --set train.warmup_epochs=0.4 --set eval.splits=[])
plateau_state() { look 'print(a["plateau"])' "$run/checkpoints/last/state.json"; }
check "a run within its warm-up" train "${plateau[@]}" --set train.max_steps=1
check "has no loss to compare with" [ "$(plateau_state)" = "{'bad': 0, 'best': None, 'factor': 1.0}" ]
check "goes on beyond it" train "${plateau[@]}" --set train.max_steps=3 --resume auto
check "and has one" grep -q "'best': 0" <<<"$(plateau_state)"

# Early stop: the first evaluation is the best, because nothing changes, not even running statistics; two epochs later it ends.
run=$scratch/early
early=(--set train.max_steps=0 --set train.epochs=9 --set train.lr=1e-30 --set model.freeze_until=backbone --set train.early_stop_epochs=2 --set eval.splits=[] --set train.batch=200)
check "an early stop" train "${early[@]}"
check "counts epochs, also those a step jumps over" says "early stop: no better checkpoint in"
steps=$(events train)
sed -i 's/"complete": true/"complete": false/' "$run/checkpoints/last/state.json"  # as if killed before its end
python3 tests/support/spoil_checkpoint.py describe "$run/checkpoints/last"
check "an early stop goes on" train "${early[@]}" --resume auto
check "and trains no further step" [ "$(events train)" = "$steps" ]

# All checkpoints damaged: nothing is trained over them.
for file in "$run"/checkpoints/step-*/model.safetensors; do truncate -s 1000 "$file"; done
before=$(sha256sum "$run/metrics.jsonl")
rc=0; train "${early[@]}" --resume auto || rc=$?
check "only damaged checkpoints: exit 4 (exit $rc)" [ $rc = 4 ]
check "and why" says "is whole; nothing was changed"
check "and nothing was trained" [ "$before" = "$(sha256sum "$run/metrics.jsonl")" ]

# Files that others may have put into a folder: the run waits for no pipe, follows no link of theirs, and refuses a folder that
# all may write. (As any other user a folder cannot be given away.)
short=(--set train.max_steps=1 --set eval.splits=[])
mkdir "$scratch/pipes"; mkfifo "$scratch/pipes/metrics.jsonl"; "$program" train "$small" --print-config >"$scratch/pipes/config.yaml"
refused 8 "metrics.jsonl: is no regular file" status "$scratch/pipes"
rm "$scratch/pipes/config.yaml"
mkfifo "$scratch/pipes/split.csv" "$scratch/pipes/report.html"
refused 8 "metrics.jsonl: is no regular file" train "$small" "${short[@]}" --out "$scratch/pipes"
rm "$scratch/pipes/metrics.jsonl"
check "pipes for files that are written are replaced" "$program" train "$small" "${short[@]}" --out "$scratch/pipes" --resume auto 2>"$scratch/log"
check "by files" [ -f "$scratch/pipes/split.csv" -a -f "$scratch/pipes/report.html" ]
rm "$scratch/pipes/.lock"; mkfifo "$scratch/pipes/.lock"
check "status waits for no lock that is a pipe" timeout 20 "$program" status "$scratch/pipes" >/dev/null
mkfifo "$scratch/table.csv"
refused 8 "table.csv: is no regular file" inspect "$small" --set data.manifest.path="$scratch/table.csv"
check "a table may be a pipe that the user gives" eval 'cat "$phantom/Data_Entry_2017.csv" | "$program" inspect "$small" --set data.manifest.path=/dev/stdin >/dev/null 2>&1'
mkdir -p "$scratch/linked" "$scratch/disk"; ln -s "$scratch/disk" "$scratch/linked/checkpoints"
check "an own link leads to another disk" "$program" train "$small" "${short[@]}" --out "$scratch/linked" 2>"$scratch/log"
check "where the checkpoints lie" [ -e "$scratch/disk/last/state.json" ]
if [ "$(id -u)" = 0 ]; then
  mkdir "$scratch/theirs"; ln -s "$scratch/disk" "$scratch/theirs/log"; chown -h 65534 "$scratch/theirs/log"
  refused 4 "theirs/log: is a link that another user made" train "$small" "${short[@]}" --out "$scratch/theirs"
  rm "$scratch/theirs/log"; chown 65534 "$scratch/theirs"; chmod 777 "$scratch/theirs"
  refused 4 "theirs: belongs to another user and everybody may write there" train "$small" "${short[@]}" --out "$scratch/theirs"
  chmod 775 "$scratch/theirs"
  check "a colleague's folder is fine" "$program" train "$small" "${short[@]}" --out "$scratch/theirs" 2>"$scratch/log"
fi

# Ends that status knows at once.
run=$scratch/ended
train --set train.max_steps=100000 & job=$!
await_step "$run" 1 "$scratch/log"; touch "$run/STOP"
rc=0; wait $job || rc=$?
check "a run that stops (exit $rc)" [ $rc = 75 ]
rc=0; train --set train.max_steps=100000 --set data.images=["$scratch/gone"] --resume auto || rc=$?
check "the data are gone (exit $rc)" [ $rc != 0 ]
check "status says that it failed, and of what" grep -q "failed .*gone.*(exit $rc)" <<<"$(status)"
# An end that fails does not count, and a resume repeats it.
run=$scratch/unwritten; mkdir -p "$run/results.json"
rc=0; train --set train.max_steps=1 || rc=$?
check "results.json cannot be written (exit $rc)" [ $rc = 4 ]
check "status says that it failed" grep -q "failed .*results.json.*(exit 4)" <<<"$(status)"
rmdir "$run/results.json"
check "a resume ends it" train --set train.max_steps=1 --resume auto
check "status says so" grep -q "(finished)" <<<"$(status)"
check "a run has one end" [ "$(events end)" = 1 ]
# Control characters from others' files do not reach a terminal; a patient is found however the number is written.
printf 'image,label:A\033[31m,prob:A\033[31m\nx,1,0.5\ny,0,0.4\n' >"$scratch/escape.csv"
"$program" evaluate --predictions "$scratch/escape.csv" --resamples 10 >"$scratch/said" 2>"$scratch/log"
check "an escape in a column's name is shown, not sent" bash -c 'grep -qF "A\x1b[31m" "$0" && ! grep -q $(printf "\033") "$0"' "$scratch/said"
patient=$(awk -F, 'NR == 2 { print $2 }' "$scratch/ended/split.csv")
check "patient 000$patient is $patient, and it is said so" bash -c "'$program' inspect '$scratch/ended' --patient '000$patient' | grep -q '^000$patient: not in this run; but $patient: '"
check "so is one with a blank before it" bash -c "'$program' inspect '$scratch/ended' --patient ' $patient' | grep -q '^ $patient: not in this run; but $patient: '"
check "what a comma joins is one id" bash -c "'$program' inspect '$scratch/ended' --patient '$patient,$patient' | grep -q ': not in this run; one id with a comma: several are separated by blanks'"
run=$scratch/killed
"$program" train "$small" --set train.max_steps=100000 --out "$run" 2>"$scratch/log" & job=$!
for _ in $(seq 600); do grep -q '"event":"train"' "$run/metrics.jsonl" 2>/dev/null && break; sleep 0.05; done
check "a run that lives is running" grep -q "(running)" <<<"$(status)"
kill -9 $job; wait $job 2>/dev/null
check "a run that was killed is not" grep -q "(died)" <<<"$(status)"
# Another run has the name of its folder, and has ended.
run=$scratch/moved
"$program" train "$small" --set train.max_steps=100000 --set eval.every_epochs=0 --set checkpoint.every_steps=40 --out "$run" 2>"$scratch/first" & job=$!
await_step "$run" 5 "$scratch/first"
kill -STOP $job; mv "$run" "$run.old"
check "a second run of the name" train --set train.max_steps=1
sums=$(cd "$run" && find . -type f -exec sha256sum {} + | sort)
kill -CONT $job; rc=0; wait $job || rc=$?
check "ends the first one (exit $rc)" [ $rc = 4 ]
check "says why" grep -q "moved: another run was begun here by process " "$scratch/first"
check "and changes nothing of the second" [ "$sums" = "$(cd "$run" && find . -type f -exec sha256sum {} + | sort)" ]
finish
