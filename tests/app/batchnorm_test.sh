#!/usr/bin/env bash
# The settings say over how many images a BatchNorm normalizes and what the loss is; few images are warned of where the backbone trains.
source tests/lib.sh
run() { "$program" train "$small" --out "$scratch/$1" --set train.max_steps=1 "${@:2}" 2>"$scratch/log"; }
sees() { grep -Eq "a BatchNorm sees +$1" "$scratch/log"; }
warned() { grep -q "a BatchNorm normalizes over $1 images only" "$scratch/log"; }

check "a batch of 8 on one rank" run whole
check "the settings say 8 images" sees "8 images of its rank"
check "no warning at 8" eval '! warned 8'
check "a batch within the split is none to warn of" eval '! grep -q "more than once" "$scratch/log"'
check "the loss is named" grep -Eq "loss +unweighted" "$scratch/log"
check "an unweighted report says nothing of shifted scores" eval '! grep -q "away from prevalence" "$scratch/whole/report.html"'

check "the same in four micro-batches, weighted" run micro --set train.accumulate=4 --set train.class_weights=balanced
check "the settings say 2 images" sees "2 images of its rank"
check "a warning below 8" warned 2
check "a weighted report says that scores are no probabilities" grep -q "weights balanced: scores are shifted away from prevalence" "$scratch/micro/report.html"

refused 2 "it has one value per channel, and no variance. Hint: a larger data.crop, train.batch = 16 or more" \
  train "$small" --out "$scratch/one" --set train.accumulate=8
check "which leaves no run" test ! -e "$scratch/one"

check "a batch of 100" run large --set train.batch=100
check "the training split is smaller" grep -Eq "train.batch=100: the training split has [0-9]+ images, so a step reads some of them more than once. Hint: train.batch=[0-9]+ or less" "$scratch/log"

check "a frozen backbone" run frozen --set train.accumulate=4 --set model.freeze_until=backbone
check "it normalizes by running statistics" sees "running statistics"
check "without a warning" eval '! warned 2'

check "two ranks with statistics of their own" run two --ranks 2
check "the settings say 4 images" sees "4 images of its rank"
check "and warn" warned 4
check "the run on one rank goes on on two" run whole --ranks 2 --resume yes --set train.max_steps=2
check "and says that its BatchNorms see 4 images, not 8" grep -q "changed: number of ranks from 1 to 2.*: a BatchNorm normalizes over 4 images, and did over 8" "$scratch/log"
check "in one warning, which says of no sum that it rounds" [ "$(grep -c "sums round\|trains differently, not only" "$scratch/log")" = 1 ]
check "the page has it" grep -q "<td>images of a BatchNorm</td> *<td>8</td> *<td>4</td>" "$scratch/whole/report.html"
check "and the model card" grep -q "^| 1 | images of a BatchNorm | 8 | 4 |" "$scratch/whole/model_card.md"
check "two ranks that share them" run shared --ranks 2 --set model.sync_batchnorm=true
check "the settings say 8 images" sees "8 images .synchronized."
check "without a warning" eval "! grep -q 'images only' \"$scratch/log\""
finish
