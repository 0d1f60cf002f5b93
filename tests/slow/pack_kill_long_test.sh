#!/usr/bin/env bash
# pack killed 50 times (CHEXNET_PACK_KILLS).
export CHEXNET_PACK_KILLS=${CHEXNET_PACK_KILLS:-50}
exec tests/robustness/pack_kill_test.sh
