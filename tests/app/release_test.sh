#!/usr/bin/env bash
# A release that was signed is accepted; one with another byte, file, list or signer is not.
command -v ssh-keygen >/dev/null || { echo "skipped: no ssh-keygen"; exit 77; }
source tests/lib.sh
mkdir -p "$scratch/signed/docs"
echo program >"$scratch/signed/a bundle.tar.gz"; echo page >"$scratch/signed/docs/page.html"
for key in ours theirs; do ssh-keygen -q -t ed25519 -N '' -f "$scratch/$key" -C ''; done
echo "release@chexnet-train $(cat "$scratch/ours.pub")" >"$scratch/signers"
echo "somebody@chexnet-train $(cat "$scratch/theirs.pub")" >>"$scratch/signers"
release() { scripts/release "$@" >"$scratch/said" 2>&1; }
changed() { rm -rf "$scratch/changed"; cp -r "$scratch/signed" "$scratch/changed"; }
refused_for() {  # refused_for TEXT WHY: of $scratch/changed
  local rc=0; release check "$scratch/signers" "$scratch/changed" || rc=$?
  check "$1" eval '[ $rc = 1 ] && grep -qF -- "'"$2"'" "$scratch/said"'
}
check "a release is signed" release sign "$scratch/ours" "$scratch/signed"
check "and accepted" release check "$scratch/signers" "$scratch/signed"
check "by the commands of SECURITY.md, too" bash -c "cd '$scratch/signed' && cp ../signers ../allowed_signers && (
  $(sed -n '/^ssh-keygen -Y verify/,/^sha256sum/p' SECURITY.md | sed 's#allowed_signers#../allowed_signers#'))"
changed; echo Page >"$scratch/changed/docs/page.html"
refused_for "a changed byte is refused" "differ from what was signed"
changed; rm "$scratch/changed/docs/page.html"
refused_for "a missing file is refused" "differ from what was signed"
changed; echo more >"$scratch/changed/more"
refused_for "a file that was not signed is refused" "not signed"
changed; ln -s /etc/passwd "$scratch/changed/docs/link"
refused_for "also a link" "not signed"
changed; echo Page >"$scratch/changed/docs/page.html"
(cd "$scratch/changed" && sha256sum "a bundle.tar.gz" docs/page.html >SHA256SUMS)
refused_for "a list that was made anew is refused" "signature is not of a key"
changed; check "another key signs" release sign "$scratch/theirs" "$scratch/changed"
refused_for "but is not the release's" "signature is not of a key"
changed; rm "$scratch/changed/SHA256SUMS.sig"
refused_for "a list without a signature is refused" "signature is not of a key"
finish
