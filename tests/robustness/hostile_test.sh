#!/usr/bin/env bash
# Files made to harm who reads them: refused or left out, in bounded memory, and nothing is written elsewhere. All of the
# corpus, with the calls of each process: scripts/robustness/hostile.
set -u
source tests/lib.sh
[ -x "$CHEXNET_BUILD/chexnet-dicom" ] || { echo "skipped: built without GDCM"; exit 77; }
check "a fifth of the hostile corpus" env CHEXNET_PHANTOM="$phantom" scripts/robustness/hostile --short --build "$CHEXNET_BUILD"
finish
