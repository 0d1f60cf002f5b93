#!/usr/bin/env bash
# The bundle with its own LibTorch, unpacked in minimal systems of Debian 11 (glibc 2.31), 12 and 13, trains the quickstart's
# network and evaluates it. Needs a portable build, root, debootstrap and a Debian mirror (CHEXNET_MIRROR).
# usage: tests/slow/bundle_systems_test.sh [SUITE...]
command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "skipped: no debootstrap, or not root"; exit 77; }
source tests/lib.sh
grep -q '^CHEXNET_PORTABLE:[A-Z]*=.' "$CHEXNET_BUILD/CMakeCache.txt" || { echo "skipped: no portable build (scripts/setup --portable)"; exit 77; }
mirror=${CHEXNET_MIRROR:-http://deb.debian.org/debian}
[ $# -gt 0 ] || set -- bullseye bookworm trixie
variant=$(sed -n 's/^CHEXNET_CUDA_VARIANT:[A-Z]*=//p' "$CHEXNET_BUILD/CMakeCache.txt")
scripts/bundle --cuda "$variant" --build "$CHEXNET_BUILD" --with-torch "$scratch/bundle.tar.gz" || exit 1
tried=0
for suite in "$@"; do
  root=$scratch/$suite
  if ! debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$scratch/log" 2>&1; then
    tail -n 5 "$scratch/log"; echo "skipped: $suite: the mirror has it no more, or there is none"; continue
  fi
  tried=$((tried + 1))
  mkdir -p "$root/opt/empty"
  tar -C "$root/opt/empty" -xzf "$scratch/bundle.tar.gz"
  mount --bind /proc "$root/proc"
  chroot "$root" /bin/sh -c 'cd /opt/empty/chexnet-train && getconf GNU_LIBC_VERSION && export PHANTOM=/tmp/phantom &&
    ./run phantom $PHANTOM --images 1500 --size 128 && ./run train configs/quickstart.yaml --ranks 1 --out /tmp/run >/dev/null &&
    ./run evaluate /tmp/run --split test --json >/tmp/test.json' >"$scratch/out" 2>"$scratch/log"; rc=$?
  PHANTOM=/tmp/phantom chroot "$root" /opt/empty/chexnet-train/run inspect /opt/empty/chexnet-train/configs/quickstart.yaml \
    --set 'data.images=[s3://bucket/prefix]' >/dev/null 2>"$scratch/err"; no_curl=$?
  umount "$root/proc"
  [ $rc = 0 ] || tail -n 5 "$scratch/log"
  check "$suite, $(head -n 1 "$scratch/out"): the bundle trains the quickstart's network and evaluates it" look "print('  mean AUROC', a['mean_auroc'])
assert $rc == 0 and a['mean_auroc'] > 0.95" "$root/tmp/test.json"
  check "$suite: what s3:// lacks there is one sentence" eval '[ $no_curl = 5 ] && grep -q "libcurl.so.4 cannot be opened" "$scratch/err"'
  rm -rf "$root"
done
[ $tried -gt 0 ] || exit 77
finish
