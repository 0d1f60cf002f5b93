# scripts/package deb: three packages on Debian's libraries, below /usr/lib/chexnet-train, with links at the usual paths.
#   chexnet-train        the program
#   chexnet-train-torch  LibTorch as far as CPUs need it; a site with GPUs replaces it by the whole
#   chexnet-dicom        the DICOM converter
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chexnet-train)
set(CPACK_PACKAGE_CONTACT "chexnet-train maintainers <maintainers@chexnet-train.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr/lib/chexnet-train)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)

install(CODE "
  set(torch \"${CHEXNET_TORCH_LIB}\")
  set(copy_torch CPU)
  set(program \"${CMAKE_BINARY_DIR}/chexnet-train\")
  include(${CMAKE_SOURCE_DIR}/scripts/install/torch.cmake)" COMPONENT cpu_torch EXCLUDE_FROM_ALL)
foreach(package program cpu_torch dicom)
  install(CODE "
    set(package ${package})
    include(${CMAKE_SOURCE_DIR}/scripts/install/system_links.cmake)" COMPONENT ${package}_links EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL Unspecified program_links cpu_torch cpu_torch_links dicom dicom_links)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)  # of half a gigabyte: seconds, where xz takes minutes
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CHEXNET_TORCH_LIB};${CMAKE_BINARY_DIR}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME chexnet-train)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "chexnet-train-torch (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "openmpi-bin, ca-certificates, libcurl4")  # the last is opened for s3://
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "chexnet-dicom")
set(CPACK_DEBIAN_TORCH_PACKAGE_NAME chexnet-train-torch)
set(CPACK_DEBIAN_DICOM_PACKAGE_NAME chexnet-dicom)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "trainer for chest X-rays
Trains DenseNet-121 and ResNet-50 on chest X-rays, with one MPI rank for each
GPU or group of CPU cores. For research use, not a medical device.")
set(CPACK_COMPONENT_TORCH_DESCRIPTION "LibTorch for chexnet-train
The libraries of LibTorch that chexnet-train loads on CPUs, in its own folder.")
set(CPACK_COMPONENT_DICOM_DESCRIPTION "DICOM X-rays to gray PNG, ids replaced
Converts DICOM X-rays to images for chexnet-train, with keyed pseudonyms in
place of patients' ids.")
include(CPack)
cpack_add_component_group(program)
cpack_add_component_group(torch)
cpack_add_component_group(dicom)
cpack_add_component(Unspecified GROUP program)
cpack_add_component(program_links GROUP program)
cpack_add_component(cpu_torch GROUP torch)
cpack_add_component(cpu_torch_links GROUP torch)
cpack_add_component(dicom GROUP dicom)
cpack_add_component(dicom_links GROUP dicom)
