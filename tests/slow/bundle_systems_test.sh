#!/usr/bin/env bash
# The bundle with its own LibTorch, unpacked in clean Debian 12 and 13 minimal systems, trains the quickstart's network. Needs root,
# debootstrap and a Debian mirror (CHEXNET_MIRROR).
command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "skipped: no debootstrap, or not root"; exit 77; }
source tests/lib.sh
mirror=${CHEXNET_MIRROR:-http://deb.debian.org/debian}
scripts/bundle --with-torch "$scratch/bundle.tar.gz" || exit 1
for suite in bookworm trixie; do
  root=$scratch/$suite
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; echo "skipped: no mirror"; exit 77; }
  mkdir -p "$root/opt/empty"
  tar -C "$root/opt/empty" -xzf "$scratch/bundle.tar.gz"
  mount --bind /proc "$root/proc"
  chroot "$root" /bin/sh -c 'cd /opt/empty/chexnet-train && export PHANTOM=/tmp/phantom && ./run phantom $PHANTOM --images 1500 --size 128 &&
    ./run train configs/quickstart.yaml --ranks 1 --out /tmp/run --json' >"$scratch/out" 2>"$scratch/log"; rc=$?
  umount "$root/proc"
  [ $rc = 0 ] || tail -n 5 "$scratch/log"
  check "$suite: the bundle trains the quickstart's network" python3 -c "
import json
auroc = json.load(open('$scratch/out'))['results']['test']['mean_auroc'] if $rc == 0 else 0
print('  mean AUROC', auroc)
assert auroc > 0.95"
done
finish
