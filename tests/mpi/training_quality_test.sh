#!/usr/bin/env bash
# Averaged weights, mixup, label smoothing and balanced sampling: the same on any number of ranks, and after a resume to the last bit.
source tests/lib.sh
recipe=(--set train.ema=0.9 --set train.mixup=0.4 --set train.label_smoothing=0.1 --set train.sampling=rare_first --set eval.splits=[])
check "a run" "$program" train "$small" "${recipe[@]}" --set train.max_steps=8 --out "$scratch/whole" 2>"$scratch/log"
check "its first half" "$program" train "$small" "${recipe[@]}" --set train.max_steps=4 --out "$scratch/half" 2>"$scratch/log"
check "and the rest" "$program" train "$small" "${recipe[@]}" --set train.max_steps=8 --out "$scratch/half" --resume yes 2>"$scratch/log"
ends_alike "a resume is the whole run" "$scratch/whole" "$scratch/half"
check "the model is not what the optimizer goes on with" look '
average, trained = a["features.conv0.weight"], b["trained/features.conv0.weight"]
assert len(average) == len(trained) and average != trained' "$scratch"/whole/checkpoints/last/{model,optimizer}.safetensors
refused 2 "train.ema: 0.9 -> 0" train "$small" "${recipe[@]}" --set train.ema=0 --set train.max_steps=9 --out "$scratch/whole" --resume yes

# What the log calls validation is what evaluate says of the checkpoint, so both use the average.
"$program" evaluate "$scratch/whole/checkpoints/last" --split val --json >"$scratch/val.json" 2>"$scratch/log"
check "evaluate scores the averaged weights" look 'assert abs(of("val", a)[-1]["mean_auroc"] - b["mean_auroc"]) < 1e-9' "$scratch"/{whole/metrics.jsonl,val.json}

sync=(--set model.sync_batchnorm=true --set train.precision=fp64 --set train.max_steps=8 --set data.val_fraction=0 --set data.resize=72 --set data.crop=64)  # as in ranks_equal_test.sh
for n in 1 2; do
  mpi "$n" train "$small" "${recipe[@]}" "${sync[@]}" --out "$scratch/sync-$n" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
check "2 ranks: losses within 1e-10, averaged parameters within 1e-9" look 'near_runs(a, b, 1e-10, 1e-9)' "$scratch"/sync-{1,2}
refused 2 "train.mixup and train.sampling draw from all images" train "$small" --out "$scratch/no" --set train.mixup=0.2 --set data.pipeline=new
refused 2 "'train.ema' = 1 is out of range" train "$small" --out "$scratch/no" --set train.ema=1
finish
