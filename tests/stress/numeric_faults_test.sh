#!/usr/bin/env bash
# Numbers that are not finite, on two ranks: in the gradient of one, in the weights that one computes with, in what a
# checkpoint holds, in tables and in the config. All ranks decide alike; the last checkpoint is untouched.
set -u
source tests/lib.sh
cc -O1 -shared -fPIC tests/support/spoil_gradient.c -o "$scratch/spoil.so" -ldl || exit 1
steps=(--set launch.bucket_mb=64 --set train.max_steps=6 --set checkpoint.every_steps=2 --set eval.splits=[])
steps+=(--set data.val_fraction=0 --set train.verify_every=1 --set checkpoint.keep=9 --set launch.timeout_s=60)
none=$scratch/none
train() {  # train RUN VARIABLES... -- OPTIONS...: exit code in $rc, what was said in $scratch/log
  local run=$1 variables=(); shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift; rc=0
  env "${variables[@]}" timeout 120 "$program" train "$small" "${steps[@]}" --ranks 2 --out "$run" "$@" \
    2>"$scratch/log" || rc=$?
}
says() { check "says: $1" grep -qF -- "$1" "$scratch/log"; }
untouched() {  # untouched RUN: its checkpoint of step 4, in the file that no config is written into
  local file=checkpoints/step-00000004/optimizer.safetensors
  check "the checkpoint of step 4 is as without a fault" cmp "$1/$file" "$scratch/whole/$file"
}
# Two all-reduces a step: the ninth begins step 5.
spoiled=(LD_PRELOAD="$scratch/spoil.so" SPOIL_RANK=1 SPOIL_FROM=9 SPOIL_TIMES=1 SPOIL_WHAT=gradient SPOIL_AS=nan)
steps_of() { grep -c '"event":"train"' "$1/metrics.jsonl"; }

train "$scratch/whole" -- ; check "a run without a fault (exit $rc)" [ $rc = 0 ]

# One value of one rank's gradient, once.
for as in nan inf; do
  train "$scratch/fail-$as" "${spoiled[@]}" SPOIL_AS=$as --
  check "$as in the gradient of rank 1: exit 6 (exit $rc)" [ $rc = 6 ]
  says "[train] step 5: the gradient is not finite. Hint: "
  untouched "$scratch/fail-$as"
  check "and is the last" [ "$(basename "$(readlink -f "$scratch/fail-$as/checkpoints/last")")" = step-00000004 ]
done
train "$scratch/fail-nan" -- --resume auto; check "it is resumed (exit $rc)" [ $rc = 0 ]
ends_alike "and ends as the run without a fault" "$scratch/fail-nan" "$scratch/whole"
train "$scratch/skip" "${spoiled[@]}" -- --set train.not_finite=skip
check "skip goes on, and after each step both ranks hold the same weights (exit $rc)" [ $rc = 0 ]
says "[train] step 5: the gradient is not finite, step skipped"
check "all six steps are in metrics.jsonl" [ "$(steps_of "$scratch/skip")" = 6 ]
untouched "$scratch/skip"
train "$scratch/often" "${spoiled[@]}" SPOIL_TIMES=99 -- --set train.not_finite=skip --set train.max_steps=30
check "ten in a row end it with 6 (exit $rc)" [ $rc = 6 ]
says "[train] step 14: the gradient is not finite. Hint: "

# A weight of one rank: its loss is not finite either, and it is named.
train "$scratch/weight" "${spoiled[@]}" SPOIL_WHAT=weight -- --set train.verify_every=0
check "nan in a weight of rank 1: exit 6 (exit $rc)" [ $rc = 6 ]
says "the gradient is not finite, nor is the loss of rank 1 on "
untouched "$scratch/weight"

# In a model or a checkpoint whose sums are right.
edit() { python3 tests/support/spoil_checkpoint.py "$@"; }
last=$scratch/whole/checkpoints/step-00000006
for tensor in features.conv0.weight features.norm0.running_var classifier.bias; do
  edit spoil "$last/model.safetensors" $tensor "$scratch/spoiled.safetensors"
  refused 4 "spoiled.safetensors: $tensor is not finite" \
    predict "$scratch/spoiled.safetensors" "$phantom/images" --out "$scratch/p.csv"
done
refused 4 "spoiled.safetensors: classifier.bias is not finite" evaluate "$scratch/spoiled.safetensors" \
  --manifest "$phantom/Data_Entry_2017.csv" --images "$phantom/images"
refused 4 "spoiled.safetensors: classifier.bias is not finite" \
  train "$small" --set model.weights="$scratch/spoiled.safetensors" --out "$none"
for file in optimizer:exp_avg_sq/classifier.bias model:classifier.bias; do
  cp -r "$scratch/whole" "$scratch/again"
  name=${file%%:*}.safetensors tensor=${file#*:}
  edit spoil "$last/$name" "$tensor" "$scratch/again/checkpoints/step-00000006/$name"
  edit describe "$scratch/again/checkpoints/step-00000006"
  train "$scratch/again" -- --resume auto --set train.max_steps=8
  check "$tensor in $name: exit 4 (exit $rc)" [ $rc = 4 ]
  says "checkpoints/step-00000006/$name: $tensor is not finite. Hint: "
  rm -r "$scratch/again"
done

# Nothing of a config or a table makes one.
for value in nan inf -inf 1e999; do
  refused 2 "'data.mean'" train "$small" --set "data.mean=[0.5,$value,0.5]" --out "$none"
done
refused 2 "'data.std' = 0 is out of range" train "$small" --set data.std=[0.2,0,0.2] --out "$none"
sed '1s/$/,trust/;2,$s/$/,1/;9s/1$/1e30/' "$phantom/Data_Entry_2017.csv" >"$scratch/trust.csv"
refused 3 "trust.csv:9: weight '1e30' in column trust is not a number from 0 to 1,000,000" \
  train "$small" --set data.manifest.path="$scratch/trust.csv" --set data.sample_weight=trust --out "$none"
check "no refused start left a folder" [ ! -e "$none" ]
finish
