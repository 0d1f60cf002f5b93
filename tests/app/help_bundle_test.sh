#!/usr/bin/env bash
# A help bundle names nobody: real runs in the layouts of NIH, CheXpert, MIMIC, of a table with record numbers and of one whose
# names hold blanks and quotes, each with a damaged image and a resume that meets a leak. Each bundle is searched for every name
# that went in.
source tests/lib.sh
checks=$source_folder/tests/app/help_bundle_checks.py
export LC_ALL=C
house=$scratch/"St Elsewhere"/drmueller
mkdir -p "$house"
config() {  # config PLACE FORMAT: of the set in PLACE
  cat >"$1/mueller.yaml" <<YAML
data:
  manifest: {format: $2, path: "$1/elsewhere-table.csv", columns: {image: image, patient: patient}}
  images: ["$1/pictures"]
  resize: 36
  crop: 32
  val_fraction: 0.2
  corrupt: 1
model: {arch: densenet121, weights: none}
train: {batch: 4, max_steps: 2, epochs: 100}
run: {log_every: 1, name: mueller-study}
eval: {batch: 4, splits: []}
launch: {device: cpu, threads: 1, mpi_args: ["--host", "icu-node7:2", "-x", "TOKENX=hunter2"]}
YAML
}
python3 "$checks" make_sets "$phantom" "$house"
config "$house/nih" nih; config "$house/chexpert" chexpert; config "$house/mimic" csv; config "$house/odd" csv; config "$house/mrn" csv

for layout in nih chexpert mimic odd mrn; do
  place=$house/$layout run=$house/$layout/run
  "$program" train "$place/mueller.yaml" --out "$run" >/dev/null 2>"$scratch/log"; rc=$?
  check "$layout: a run" [ $rc = 0 ]
  # Another host of the run, and how it ended.
  printf '{"event":"start","step":0,"host":"node17.secret-hospital.example"}\n' >>"$run/metrics.jsonl"
  printf '{"what": "Rank 1 on node17.secret-hospital.example died", "resume": "%s train %s", "all_ranks": [{"rank": 1, "host": "node17.secret-hospital.example"}]}\n' \
    "$program" "$place/mueller.yaml" >"$run/postmortem.json"
  # A leak, met by a resume.
  python3 "$checks" leak "$place" "$run"
  "$program" train "$place/mueller.yaml" --out "$run" --resume auto --set data.test_list="$place/test.txt" --set data.train_list="$place/train.txt" \
    --set data.val_fraction=0 >/dev/null 2>"$scratch/said"; rc=$?
  check "$layout: a leak is refused" [ $rc != 0 ]
  (cd "$scratch" && "$program" doctor --collect "$run") >/dev/null 2>"$scratch/log" || true
  check "$layout: nobody is named" python3 "$checks" search "$run" "$house" "$scratch/chexnet-help.tar.gz" "$scratch/said"
done
check "no folder of ours stays behind" bash -c "! ls -d ${TMPDIR:-/tmp}/chexnet-help-* 2>/dev/null"

# The owner of the files, whoever collects them.
if [ "$(id -u)" = 0 ] && id games >/dev/null 2>&1; then
  chown -R games "$run"; echo "2026-11-22T00:00:00 info games plays games/x" >>"$run/log/rank-000.txt"
  (cd "$scratch" && "$program" doctor --collect "$run") >/dev/null 2>&1
  check "the files' owner is not named" bash -c "! gzip -dc '$scratch/chexnet-help.tar.gz' | grep -qw games"
fi
# A folder that cannot be read leaves nothing in TMPDIR.
mkdir "$scratch/tmp" && rm "$run/config.yaml" && mkdir "$run/config.yaml"
(cd "$scratch" && TMPDIR=$scratch/tmp "$program" doctor --collect "$run") >/dev/null 2>&1; rc=$?
check "a failure leaves nothing behind" test "$rc" != 0 -a -z "$(ls -d "$scratch"/tmp/chexnet-help* 2>/dev/null)"
finish
