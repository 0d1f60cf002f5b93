# Run by cmake --install: lib/torch becomes a copy of LibTorch's libraries (copy_torch) or a link to them. torch: where they
# are; build: the build folder.
# copy_torch CPU: of those alone that `program` and LibTorch's CPU side load.
set(place "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/torch")
if(copy_torch)
  if(IS_SYMLINK "${place}")
    file(REMOVE "${place}")
  endif()
  file(MAKE_DIRECTORY "${place}")
  file(CHMOD "${place}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  if(copy_torch STREQUAL CPU)
    file(REAL_PATH "${torch}" folder)
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${program}" LIBRARIES "${folder}/libtorch_cpu.so" DIRECTORIES "${folder}"
      RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing)
    list(TRANSFORM libraries REPLACE "^.*/torch/([^/]*)$" "${folder}/\\1")
    list(FILTER libraries INCLUDE REGEX "^${folder}/")
    list(APPEND libraries "${folder}/libtorch_cpu.so")
    list(REMOVE_DUPLICATES libraries)
  else()
    file(GLOB libraries "${torch}/*.so*")
  endif()
  file(INSTALL ${libraries} DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/torch" FOLLOW_SYMLINK_CHAIN)
  return()
endif()
file(REMOVE_RECURSE "${place}")
file(CREATE_LINK "${torch}" "${place}" SYMBOLIC)

# Others need to get through each folder on the way.
file(REAL_PATH "${torch}" way)
set(closed "")
while(NOT way STREQUAL "/")
  execute_process(COMMAND stat -c %A "${way}" OUTPUT_VARIABLE mode OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT mode MATCHES "[xt]$")
    set(closed "${way}")
  endif()
  get_filename_component(way "${way}" DIRECTORY)
endwhile()
if(closed)
  message(WARNING "lib/torch leads into ${closed}, which other users may not enter: the program will run for you alone. For everybody, copy LibTorch:
  cmake -DCHEXNET_INSTALL_TORCH=ON ${build}
  cmake --install ${build} --prefix ${CMAKE_INSTALL_PREFIX}
or have it where all can read, and build anew: CHEXNET_CACHE=FOLDER scripts/setup")
endif()
