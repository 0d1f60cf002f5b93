# Run by cmake --install: makes the folders that are not there for everybody to read, whatever the umask of who installs; CMake's
# own folders obey it. Folders that are there stay as they are.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
foreach(folder . bin lib share share/man share/man/man1 share/bash-completion share/bash-completion/completions share/modulefiles
    share/modulefiles/chexnet-train share/chexnet-train share/chexnet-train/scripts)
  if(NOT EXISTS "${prefix}/${folder}")
    file(MAKE_DIRECTORY "${prefix}/${folder}")
    file(CHMOD "${prefix}/${folder}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
