#!/usr/bin/env bash
# The same global batch on 1, 2 and 4 ranks: synchronized BatchNorm in fp64 gives the same run, evaluation the same bits.
source tests/lib.sh
sync=(--set model.sync_batchnorm=true --set train.precision=fp64 --set train.max_steps=10 --set eval.splits=[] --set data.val_fraction=0 --set data.resize=72 --set data.crop=64)  # 32 px would leave BatchNorm 8 values a channel: chaotic
for n in 1 2 4; do
  mpi "$n" train "$small" "${sync[@]}" --out "$scratch/sync-$n" 2>"$scratch/log-$n" || { cat "$scratch/log-$n"; exit 1; }
done
for n in 2 4; do
  check "$n ranks: losses within 1e-10, parameters within 1e-9" look 'near_runs(a, b, 1e-10, 1e-9)' "$scratch/sync-1" "$scratch/sync-$n"
done

# Scores do not depend on who computed them.
mpi 2 train "$small" --set train.max_steps=6 --out "$scratch/run" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
for n in 1 4; do  # the run itself has scored on two
  mpi "$n" evaluate "$scratch/run" --out "$scratch/p$n.csv" --by sex --by age --figures "$scratch/f$n.csv" --json >"$scratch/e$n.json" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
check "scores bitwise equal on 1 and 2 ranks" cmp "$scratch/p1.csv" "$scratch/run/predictions_test.csv"
check "scores bitwise equal on 1 and 4 ranks" cmp "$scratch/p1.csv" "$scratch/p4.csv"
check "figures and intervals equal on 1 and 4 ranks" cmp "$scratch/e1.json" "$scratch/e4.json"
check "calibration, subgroups and all other figures equal on 1 and 4 ranks" cmp "$scratch/f1.csv" "$scratch/f4.csv"
for n in 1 4; do
  mpi "$n" evaluate "$scratch/run" --set eval.crops=10 --set data.workers="$n" --out "$scratch/crops$n.csv" --resamples 500 --figures "$scratch/crops$n.f.csv" >/dev/null 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
check "scores over ten crops bitwise equal on 1 and 4 ranks" cmp "$scratch/crops1.csv" "$scratch/crops4.csv"
check "and their figures" cmp "$scratch/crops1.f.csv" "$scratch/crops4.f.csv"
"$program" evaluate --predictions "$scratch/p1.csv" --manifest "$phantom/Data_Entry_2017.csv" --json >"$scratch/table.json"
check "scores of the written table are those of the checkpoint" look '
assert a["images"] > 20 and len(a["auroc"]) == 14 and a["split"]["name"] == "test" and len(a["split"]["sha256"]) == 64
assert all(a[k] == b[k] for k in ("auroc", "mean_auroc", "findings", "mean_auroc_interval", "any_finding_interval", "intervals"))
found = [(f["auroc"], f["auroc_interval"]) for f in a["findings"].values() if f["auroc_interval"]]
assert found and all(low <= value <= high for value, (low, high) in found)
assert a["intervals"]["by"] == "patient" and a["intervals"]["resamples"] == 10000' "$scratch"/{e1,table}.json
# Gradients of 16 bits stay near the exact ones: by plain SGD at rate 1, where parameters move by the gradient itself.
wire=(--set train.max_steps=1 --set train.optimizer=sgd --set train.lr=1 --set eval.splits=[] --set data.val_fraction=0)
mpi 2 train "$small" "${wire[@]}" --out "$scratch/exact" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
for format in fp16 bf16; do
  mpi 2 train "$small" "${wire[@]}" --set launch.gradient_compression=$format --out "$scratch/$format" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
  check "gradients over $format are near the exact ones, running statistics equal" look 'near_runs(a, b, 1e-6, 1e-2, statistics_equal=True)' "$scratch"/{exact,$format}
done
finish
