# Run by CPack: what of a package lies outside of its folder. package: program, cpu_torch or dicom.
if("$ENV{DESTDIR}" STREQUAL "")
  message(FATAL_ERROR "only CPack installs ${package}_links. Hint: scripts/package deb")
endif()
set(usr "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/../..")
set(home ../lib/chexnet-train)
set(names_program chexnet-train)
set(names_cpu_torch chexnet-train-torch)
set(names_dicom chexnet-dicom)
set(name ${names_${package}})

function(make_folder path)
  file(MAKE_DIRECTORY "${path}")
  file(CHMOD "${path}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()
function(link to from)
  get_filename_component(folder "${from}" DIRECTORY)
  make_folder("${folder}")
  file(CREATE_LINK "${to}" "${from}" SYMBOLIC)
endfunction()

make_folder("${usr}/share")
make_folder("${usr}/share/doc")
make_folder("${usr}/share/doc/${name}")
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../third_party/LICENSES.md libraries)
file(WRITE "${usr}/share/doc/${name}/copyright" "Copyright: the authors of chexnet-train
License: Apache-2.0, whose text is in /usr/share/common-licenses/Apache-2.0

${libraries}")
if(package STREQUAL program)
  make_folder("${usr}/bin")
  link(${home}/bin/chexnet-train "${usr}/bin/chexnet-train")
  make_folder("${usr}/share/man")
  make_folder("${usr}/share/man/man1")
  execute_process(COMMAND gzip -9nc "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/man/man1/chexnet-train.1"
    OUTPUT_FILE "${usr}/share/man/man1/chexnet-train.1.gz" COMMAND_ERROR_IS_FATAL ANY)
  make_folder("${usr}/share/bash-completion")
  link(../../../lib/chexnet-train/share/bash-completion/completions/chexnet-train
    "${usr}/share/bash-completion/completions/chexnet-train")
elseif(package STREQUAL dicom)
  link(${home}/bin/chexnet-dicom "${usr}/bin/chexnet-dicom")
endif()
