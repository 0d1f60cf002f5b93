# Copyright the authors of chexnet-train.
#
# SPDX-License-Identifier: Apache-2.0

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass  # before Spack 1.0 it is part of spack.package


class Protozero(CMakePackage):
    """Minimalistic protocol buffer decoder and encoder in C++: headers alone."""

    homepage = "https://github.com/mapbox/protozero"
    url = "https://github.com/mapbox/protozero/archive/v1.8.1.tar.gz"

    license("BSD-2-Clause")

    version("1.8.1", sha256="6c7a896f1dc08435e8cd4f3780ff688cd0bfce6890599b755f6f3cb36398dc25")

    depends_on("c", type="build")
    depends_on("cxx", type="build")

    def cmake_args(self):
        return [self.define("BUILD_TESTING", False)]
