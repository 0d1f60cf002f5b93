#!/usr/bin/env bash
# A run whose first blocks are frozen for an epoch, stopped before and after they thaw, ends as the run without a stop.
source tests/lib.sh
quick=(--ranks 2 --set eval.splits=[] --set eval.every_epochs=0 --set model.freeze_until=block2 --set model.freeze_epochs=1
       --set train.epochs=2 --set train.layer_decay=0.5 --set train.head_lr_factor=4)
log=$scratch/log
trains() { "$program" train "$small" "${quick[@]}" --out "$scratch/$1" --resume auto "${@:2}" 2>"$log"; }
thaws() { grep -q "epoch 2: all is trained from here on (model.freeze_epochs=1)" "$log"; }

check "a run that thaws" trains whole
check "says so" thaws
check "warns that random numbers are frozen" grep -q "model.freeze_until=block2 with model.weights=none: what is frozen are random numbers" "$log"
check "and what is frozen, and each rate" bash -c 'grep -q "; frozen until block2 for 1 epoch" "$1" && grep -q "head x 4, block4 x 0.5 down to the stem x 0.0312" "$1"' - "$log"
check "the card that goes with the weights says it" grep -q ", frozen until block2 for 1 epoch. Weights: " "$scratch/whole/model_card.md"
steps=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["step"])' "$scratch/whole/checkpoints/last/state.json")
check "stopped while frozen" trains stopped --set train.max_steps=2
check "nothing has thawed" eval '! thaws'
check "stopped after the thaw" trains stopped --set train.max_steps=$((steps - 1))
check "in this start" thaws
check "the rest" trains stopped
check "which was thawed before" eval '! thaws'
ends_alike "stops before and after the thaw" "$scratch/whole" "$scratch/stopped"

refused 2 "nothing is frozen. Hint: name up to where with model.freeze_until" train "$small" --out "$scratch/none" --set model.freeze_epochs=1
refused 2 "not less than train.epochs: nothing would thaw" train "$small" --out "$scratch/none" --set model.freeze_until=stem --set model.freeze_epochs=2 --set train.epochs=2
refused 2 "'model.freeze_backbone' is no key any more. Hint: write model.freeze_until: backbone" \
  train "$small" --out "$scratch/none" --set model.freeze_backbone=true
finish
