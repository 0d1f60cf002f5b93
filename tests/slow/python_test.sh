#!/usr/bin/env bash
# Runs as tables, pixels from memory and both notebooks; then MLflow: its server, a sync of a run that goes on, one that is
# killed, and what must stay here. Needs PyPI.
source tests/lib.sh
python_tools python pandas PyYAML Pillow matplotlib nbclient ipykernel mlflow || { echo "skipped"; exit 77; }
export PYTHONPATH=$source_folder/scripts/python CHEXNET_PROGRAM=$program PYTHONDONTWRITEBYTECODE=1
mkdir "$scratch/runs"
train() { "$program" train "$small" --out "$scratch/runs/$1" --set data.val_fraction=0.2 --set run.log_every=1 "${@:2}" 2>"$scratch/log"; }
check "a run" train one --set train.max_steps=6
check "and another" train two --set train.max_steps=3 --set train.lr=0.002
checks() { "$tools/python3" tests/slow/python_checks.py "$@"; }
check "tables" checks tables "$scratch/runs" "$phantom/images"
for notebook in runs new-images; do
  check "notebook $notebook" env RUNS="$scratch/runs" MODEL="$scratch/runs/one" "$tools/python3" -c '
import sys
import nbclient
import nbformat
nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=300).execute()' "docs/notebooks/$notebook.ipynb" 2>"$scratch/log"
done

port=$(python3 tests/support/free_ports.py 1)
(cd "$scratch" && exec "$tools/mlflow" server --backend-store-uri sqlite:///mlflow.db --artifacts-destination ./artifacts --port "$port" --workers 1 >server.log 2>&1) &
server=$!
trap 'kill $server; wait $server' EXIT
export MLFLOW_TRACKING_URI=http://127.0.0.1:$port
await "the server" curl -sf "$MLFLOW_TRACKING_URI/health" -o "$scratch/health"
sync() { "$tools/python3" -m chexnet_train.sync "$@"; }
check "a run that was stopped" train three --set train.max_steps=4 --set train.epochs=9
check "names stay apart" checks names
check "is synced" sync "$scratch/runs/three" >"$scratch/said"
check "as it is" checks synced "$scratch/runs/three" "$scratch/said"
check "goes on" "$program" train "$small" --resume --out "$scratch/runs/three" --set data.val_fraction=0.2 --set run.log_every=1 --set train.max_steps=8 2>"$scratch/log"
check "is synced again" sync "$scratch/runs/three" >"$scratch/said"
check "into the same, with what is new" checks synced "$scratch/runs/three" "$scratch/said"
cp -r "$scratch/runs/three" "$scratch/moved"
check "a copy is the same run" sync "$scratch/moved" >"$scratch/again"
check "with nothing to send" grep -q " 0 params, 0 metrics, config.yaml, " "$scratch/again"
check "a sync that is killed" checks killed "$scratch/runs/one"
check "goes on" sync "$scratch/runs/one" >"$scratch/said"
check "and nothing is missing or there twice" checks synced "$scratch/runs/one" "$scratch/said"
check "no prediction, list of patients or name of an image went" bash -c "! grep -rlE '$(cut -d, -f1 "$scratch/runs/one/split.csv" | sed 1d | paste -sd'|')' '$scratch/artifacts'"
check "but what --include names" sync "$scratch/runs/one" --include predictions_test.csv >"$scratch/said"
check "is there" [ -n "$(find "$scratch/artifacts" -name predictions_test.csv)" ]

check "a third run" train four --set train.max_steps=2
(sync "$scratch/runs/four" >"$scratch/first") & other=$!
check "two syncs at once" sync "$scratch/runs/four" >"$scratch/said"
check "both end well" wait $other
check "make one run" checks alone "$scratch/runs/four"
for members in "one two" "two four"; do
  out=$scratch/${members/ /-}/all
  mkdir "${out%/all}"
  check "an ensemble of $members" "$program" ensemble $(printf "$scratch/runs/%s " $members) --out "$out" 2>"$scratch/log"
  check "is synced" sync "$out" >"$scratch/said"
  check "into a run of its own, whatever its name" checks alone "$out"
done
for file in config.yaml results.json; do
  cp -r "$scratch/runs/one" "$scratch/damaged-$file"
  echo '{"a: [' >"$scratch/damaged-$file/$file"
  sync "$scratch/damaged-$file" 2>"$scratch/log"; check "a damaged $file: exit 1" [ $? = 1 ]
  check "and a sentence" eval 'grep -q "^sync: " "$scratch/log" && ! grep -q Traceback "$scratch/log"'
done
sync "$scratch/runs/one" --mlflow http://127.0.0.1:1 2>"$scratch/log"; check "no server: says so, in seconds" [ $? = 1 ]
check "and what to do" grep -q "Hint: say it again" "$scratch/log"
finish
