#!/usr/bin/env bash
# The .rpm: where its files lie, what it asks of the system, rpmlint's errors; and its files, unpacked by rpm's tool into an
# empty folder, train a phantom. Needs rpm, rpmbuild and rpmlint (Debian has them).
for tool in rpm rpmbuild rpmlint rpm2cpio cpio; do command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }; done
source tests/lib.sh
begin=$SECONDS
scripts/package rpm "$scratch" >"$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; exit 1; }
package=$(ls "$scratch"/*.rpm)
echo "made in $((SECONDS - begin)) s: $(stat -c '%n, %s bytes' "$package")"
rpm -qpl "$package" >"$scratch/files"
for file in bin/chexnet-train lib/chexnet-train/run lib/chexnet-train/lib/libchexnet_mpi.so lib/chexnet-train/lib/torch/libtorch_cpu.so \
    share/man/man1/chexnet-train.1.gz share/bash-completion/completions/chexnet-train share/licenses/chexnet-train/LICENSE; do
  check "/usr/$file" grep -qx "/usr/$file" "$scratch/files"
done
check "no folder of the system is its own" bash -c "! grep -xE '/usr(/(bin|lib|share|share/man|share/man/man1))?' '$scratch/files'"
check "it asks for the C library of third_party/floor.txt, and rpm" test "$(rpm -qp --requires "$package" | grep -v '^rpmlib(')" = "libc.so.6(GLIBC_$(sed -n 's/^GLIBC //p' third_party/floor.txt))(64bit)"
check "and gives nobody its private libraries" test -z "$(rpm -qp --provides "$package" | grep '\.so')"
rpmlint "$package" >"$scratch/lint" 2>/dev/null
# What rpmlint calls an error and is meant so: our libraries and RPATHs that ldconfig is not to know, a folder below /usr/lib,
# LibTorch as it was published, examples of job scripts; and who signs packages is the site's to say.
known='arch-dependent-file-in-usr-lib|binary-or-shlib-defines-rpath|shared-library-without-dependency-information|missing-hash-section|shared-library-not-executable'
known+='|library-without-ldconfig-post|invalid-soname|non-versioned-file-in-library-package|non-executable-script|no-signature'
check "rpmlint finds no other error" bash -c "! grep ' E: ' '$scratch/lint' | grep -vE '$known'"
mkdir "$scratch/root"
(cd "$scratch/root" && rpm2cpio "$package" | cpio -idm --quiet)
unpacked=(env -i PATH=/usr/bin:/bin HOME="$scratch" PHANTOM="$scratch/phantom" "$scratch/root/usr/bin/chexnet-train")
check "unpacked, it draws a phantom" "${unpacked[@]}" phantom "$scratch/phantom" --images 200 --size 64
check "trains" "${unpacked[@]}" train "$scratch/root/usr/lib/chexnet-train/share/chexnet-train/configs/quickstart.yaml" --ranks 1 --set train.max_steps=4 --out "$scratch/run"
check "and predicts" "${unpacked[@]}" predict "$scratch/run" "$scratch/phantom/images" --ranks 1 --out "$scratch/scores.csv"
check "a row for each image" [ "$(wc -l <"$scratch/scores.csv")" = 201 ]
finish
