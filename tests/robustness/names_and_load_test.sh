#!/usr/bin/env bash
# Odd names come back as they were, and a table, a folder and shards of some hundred entries are read.
# tests/slow/load_and_length_long_test.sh does it by the million.
source tests/lib.sh
check "names, tables, folders, shards" scripts/robustness/load --jobs names,rows,files,shards --rows 1000 --files 300 --shards 40 \
  --program "$program" --folder "$scratch"
finish
