#!/usr/bin/env bash
# bash completion knows commands, options, config keys and their values, and leaves the rest to names of files.
source tests/lib.sh
"$program" config --completion >"$scratch/completion" || exit 1
# shellcheck disable=SC1091
source "$scratch/completion"
compopt() { :; }  # there is no command line to be completed here
completed() {  # completed WORD...: what the last of the words may become
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _chexnet_train
  echo "${COMPREPLY[*]}"
}
knows() { local wanted=$1; shift; check "${*: -3} -> $wanted" test "$(completed chexnet-train "$@")" = "$wanted"; }
knows train tr
knows '' train ''  # files
knows '--ranks --ranks-per-node' train --rank
knows 'train.schedule=' train --set train.sched
# bash hands key=value over in three words.
knows 'auto direct aten' train --set train.engine = ''
knows 'constant cosine' train --set train.schedule = co
knows 'true false' train cfg.yaml --set model.sync_batchnorm = ''
knows '' train cfg.yaml --set data.manifest.path = ''
knows 'step infer allreduce loader pipelines run scaling' bench ''
knows 'auto cpu cuda' bench step --device ''
knows 'all test train val' evaluate run --split ''
check "every command is offered" test "$(completed chexnet-train '' | wc -w)" = "$("$program" --help | sed -n '/^Prepare:/,$p' | grep -c '^  [a-z]')"
check "messages and pages name options that there are" python3 tests/app/hint_checks.py "$scratch/completion"
finish
