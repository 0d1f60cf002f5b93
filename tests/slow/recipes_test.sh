#!/usr/bin/env bash
# The recipes for EasyBuild, conda and Spack are what these tools take them for, and what they depend on exists. Nothing is built:
# that takes hours. Needs PyPI for EasyBuild and rattler-build; Spack is looked at where a `spack` is in PATH.
source tests/lib.sh
recipes=$PWD/scripts/install/recipes
python_tools recipes easybuild-framework easybuild-easyblocks easybuild-easyconfigs pycodestyle py-rattler-build ||
  { echo "skipped"; exit 77; }

# Debian keeps modulecmd.tcl elsewhere than EasyBuild looks.
modules=$(find /usr/lib /usr/share -name modulecmd.tcl 2>/dev/null | head -n 1)
if [ -n "$modules" ]; then
  mkdir -p "$scratch/modules/libexec" && ln -s "$modules" "$scratch/modules/libexec/modulecmd.tcl"
  easybuild() {
    env MODULESHOME="$scratch/modules" EASYBUILD_PREFIX="$scratch/eb" EASYBUILD_MODULES_TOOL=EnvironmentModules EASYBUILD_MODULE_SYNTAX=Tcl \
      EASYBUILD_ALLOW_MODULES_TOOL_MISMATCH=1 EB_PYTHON="$tools/python" "$tools/eb" --allow-use-as-root-and-accept-consequences "$@" >"$scratch/out" 2>&1 ||
      { tail -n 5 "$scratch/out"; return 1; }
  }
  check "EasyBuild's style" easybuild --check-style "$recipes"/easybuild/*.eb
  check "EasyBuild finds all that it depends on" easybuild --dry-run --robot "$recipes/easybuild:" "$recipes"/easybuild/chexnet-train-*.eb
  check "down to the compiler" bash -c "grep -q 'module: chexnet-train/' <(tr -d '\n' <'$scratch/out') && grep -q 'module: GCCcore/' '$scratch/out'"
else
  echo "skipped: EasyBuild (no Environment Modules)"
fi

check "rattler-build renders the conda recipe" "$tools/python" - "$recipes/conda" <<'PY'
import sys
from pathlib import Path
from rattler_build import Stage0Recipe, VariantConfig
folder = Path(sys.argv[1])
variants = Stage0Recipe.from_file(folder / 'recipe.yaml').render(VariantConfig.from_file(folder / 'variants.yaml'))
[recipe] = [variant.recipe for variant in variants]
pinned = Path('third_party/pins/cuda13-build.txt').read_text().split('torch==')[1].split()[0]
assert f'libtorch =={pinned}' in recipe.requirements.run, recipe.requirements.run
assert 'sysroot_linux-64 2.28.*' in recipe.requirements.build
PY
check "each recipe has the version of the program" test "$(grep -l "$(sed -n 's/^project(chexnet-train VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)" \
  "$recipes"/{conda/recipe.yaml,spack/packages/chexnet-train/package.py,easybuild/chexnet-train-*.eb} | wc -l)" = 3

if command -v spack >/dev/null; then
  mkdir "$scratch/scope"
  export SPACK_DISABLE_LOCAL_CONFIG=1 SPACK_USER_CACHE_PATH=$scratch/spack
  printf 'repos: [%s]\n' "$recipes/spack" >"$scratch/scope/repos.yaml"
  check "Spack reads the recipe" spack -C "$scratch/scope" info chexnet-train
  check "and its audit finds nothing" spack -C "$scratch/scope" audit packages chexnet-train protozero
else
  echo "skipped: Spack (none in PATH)"
fi
finish
