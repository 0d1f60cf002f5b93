# Copyright the authors of chexnet-train.
#
# SPDX-License-Identifier: Apache-2.0

import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass  # before Spack 1.0 it is part of spack.package


class ChexnetTrain(CMakePackage):
    """Trains DenseNet-121 and ResNet-50 on chest X-rays, with one MPI rank for each GPU or group
    of CPU cores. For research use, not a medical device.

    The source is an archive of the repository, in the folder where spack is called:
    git archive --prefix chexnet-train-0.1.0/ -o chexnet-train-0.1.0.tar.gz HEAD"""

    url = f"file://{os.getcwd()}/chexnet-train-0.1.0.tar.gz"
    manual_download = True

    license("Apache-2.0")

    version("0.1.0")

    variant("cuda", default=False, description="Train on GPUs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.2:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("protozero@1.7:", type="build")
    depends_on("cpp-httplib@0.11:", type="build")
    depends_on("catch2@2.13:", type="build")
    depends_on("libpng", type="build")

    depends_on("openmpi@4:")
    depends_on("hwloc@2.9:")
    depends_on("opencv@4.6:+imgproc")
    depends_on("libspng@0.7.2:")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("zlib-api")
    depends_on("isa-l")
    depends_on("libdeflate")
    depends_on("curl")
    depends_on("yaml-cpp@0.7:")
    depends_on("spdlog@1.10:")
    depends_on("openssl@3:")
    # Headers and libraries of one version: the program asks for the LibTorch that it was built with.
    depends_on("py-torch@2.11 +cuda+nccl", when="+cuda")
    depends_on("py-torch@2.11 ~cuda", when="~cuda")

    generator("ninja")

    def cmake_args(self):
        cmake_files = self.spec["py-torch"].package.cmake_prefix_paths[0]  # …/torch/share/cmake
        return [self.define("CHEXNET_TORCH", os.path.dirname(os.path.dirname(cmake_files)))]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def draws_a_phantom(self):
        Executable(self.prefix.bin.join("chexnet-train"))("phantom", "phantom", "--images", "20", "--size", "64")
