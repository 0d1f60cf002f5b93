# CPack's configuration for scripts/package rpm: one package of the bundle with its LibTorch, below /usr/lib/chexnet-train, for any
# distribution whose C library is new enough. Each has the other libraries in other versions, so the package brings its own.
set(CPACK_GENERATOR RPM)
set(CPACK_PACKAGE_NAME chexnet-train)
set(CPACK_PACKAGE_VERSION $ENV{CHEXNET_VERSION})
set(CPACK_PACKAGE_FILE_NAME unused)
set(CPACK_INSTALLED_DIRECTORIES "$ENV{CHEXNET_TREE};/usr")
set(CPACK_INSTALL_CMAKE_PROJECTS "")
set(CPACK_PACKAGE_DIRECTORY $ENV{CHEXNET_OUT})
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_DESCRIPTION unused)
set(CPACK_RPM_PACKAGE_SUMMARY "Trainer for chest X-rays")
set(CPACK_RPM_PACKAGE_DESCRIPTION "Trains DenseNet-121 and ResNet-50 on chest X-rays, with one MPI rank for each
GPU or group of CPU cores. For research use, not a medical device.")
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND BSD-3-Clause AND MIT AND Zlib")
set(CPACK_RPM_PACKAGE_GROUP Applications/Engineering)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/share/licenses /usr/share/man /usr/share/man/man1)
# What the files ask of the system is the C library of floor.txt.
set(CPACK_RPM_PACKAGE_AUTOREQPROV no)
set(CPACK_RPM_PACKAGE_REQUIRES "libc.so.6(GLIBC_$ENV{CHEXNET_GLIBC})(64bit)")
# What the bundle holds is stripped; and half a gigabyte is packed in seconds.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define packager the authors of chexnet-train
%define _build_id_links none
%define __os_install_post %{nil}
%define _binary_payload w3.zstdio")
