#!/bin/bash
#$ -N chexnet -pe mpi 8 -l h_rt=24:00:00 -notify -cwd -j y
# Training under Grid Engine: qsub FILE. Replace `mpi`, because the name of a parallel environment is the center's.
# tests/schedulers/grid_engine_test.sh runs such a script. With -notify Grid Engine sends USR2 to the whole job before it
# kills (the queue's `notify`, 60 s). The program takes it for a request to stop; `trap :` keeps this script alive (`trap ''`
# would have the program ignore it, too).
trap : USR1 USR2
chexnet-train train cfg.yaml --out runs/one --resume auto; code=$?
# After 99 Grid Engine starts the job again. 8.1.9 never does so with a job of several hosts ("clean up of a previous run"):
# there `qsub "$0"` instead.
case $code in 5 | 7 | 9 | 75) exit 99 ;; *) exit "$code" ;; esac
