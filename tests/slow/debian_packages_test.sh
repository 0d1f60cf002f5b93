#!/usr/bin/env bash
# The .deb packages, installed in a bare Debian 12 by its apt, and used by somebody who is not root: from nothing to a trained
# phantom. Needs root, debootstrap and a Debian mirror (CHEXNET_MIRROR).
command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "skipped: no debootstrap, or not root"; exit 77; }
source tests/lib.sh
mirror=${CHEXNET_MIRROR:-http://deb.debian.org/debian}
root=$scratch/root
begin=$SECONDS
scripts/package deb "$scratch" >"$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; exit 1; }
echo "made in $((SECONDS - begin)) s:"; (cd "$scratch" && stat -c '  %n, %s bytes' ./*.deb)
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; echo "skipped: no mirror"; exit 77; }
for folder in proc sys; do mount --bind "/$folder" "$root/$folder"; done
trap 'umount "$root/proc" "$root/sys"; rm -rf "$scratch"' EXIT
cp /etc/resolv.conf "$root/etc/"
mkdir "$root/packages" && cp "$scratch"/*.deb "$root/packages"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c "$1" >"$scratch/out" 2>"$scratch/log" || { tail -n 5 "$scratch/log"; return 1; }; }
as_user() { inside "cd /home/reader && HOME=/home/reader PHANTOM=/home/reader/phantom setpriv --reuid=1000 --regid=1000 --clear-groups $1"; }

begin=$SECONDS
check "apt installs them with what they depend on" inside 'apt-get update && apt-get install -y --no-install-recommends /packages/*.deb'
echo "  in $((SECONDS - begin)) s"
inside 'useradd --uid 1000 --create-home reader'
begin=$SECONDS
configs=/usr/lib/chexnet-train/share/chexnet-train/configs
check "a user draws a phantom" as_user 'chexnet-train phantom phantom --images 200 --size 64'
check "trains" as_user "chexnet-train train $configs/quickstart.yaml --ranks 1 --set train.max_steps=4 --out run"
check "and predicts" as_user 'chexnet-train predict run phantom/images --ranks 1 --out scores.csv'
check "a row for each image" [ "$(wc -l <"$root/home/reader/scores.csv")" = 201 ]
echo "  in $((SECONDS - begin)) s"
check "the DICOM converter starts" as_user 'chexnet-dicom --help'
check "man page" inside 'zcat /usr/share/man/man1/chexnet-train.1.gz | grep -q "^.TH CHEXNET"'
check "completion" inside 'grep -q chexnet-train /usr/share/bash-completion/completions/chexnet-train'
check "all of it can be read by everybody" test -z "$(find "$root/usr/lib/chexnet-train" -not -type l \( -type d -not -perm -005 -o -type f -not -perm -004 \))"
check "apt removes them" inside 'apt-get purge -y chexnet-train chexnet-train-torch chexnet-dicom && ! ls -d /usr/lib/chexnet-train /usr/bin/chexnet-train'
finish
