# This machine's equipment: which GPUs to compile for, and where libraries lie.

# foretrain_architectures(OUT KNOWN PRESENT): the GPUs of this machine (PRESENT, as 75 for 7.5), of those that the toolkit
# compiles for (KNOWN); for one newer than all of them the PTX of the closest, which its driver compiles. Without a GPU,
# all between Volta and Blackwell that the toolkit knows, the newest also as PTX. A GPU that is too old ends the
# configuration: nothing built here would run on it.
function(foretrain_architectures out known present)
  list(SORT known COMPARE NATURAL)
  set(architectures "")
  foreach(gpu IN LISTS present)
    if(gpu IN_LIST known)
      list(APPEND architectures ${gpu}-real)
      continue()
    endif()
    set(closest "")
    foreach(candidate IN LISTS known)
      if(candidate LESS gpu)
        set(closest ${candidate})
      endif()
    endforeach()
    if(NOT closest)
      message(FATAL_ERROR "This CUDA toolkit compiles for no GPU as old as compute capability ${gpu} (in tenths): use an "
                          "older one (CUDA 12 for Volta), by CUDACXX=/usr/local/cuda-12.8/bin/nvcc")
    endif()
    list(APPEND architectures ${closest}-virtual)
  endforeach()
  if(NOT present)
    foreach(candidate 70 75 80 86 89 90 100)
      if(candidate IN_LIST known)
        list(APPEND architectures ${candidate}-real)
        set(newest ${candidate})
      endif()
    endforeach()
    list(APPEND architectures ${newest}-virtual)
  endif()
  list(REMOVE_DUPLICATES architectures)
  set(${out} ${architectures} PARENT_SCOPE)
endfunction()

# foretrain_find(NAME HEADER VERSION): NAME_HEADERS and NAME_LIBRARY in the cache, from NAME_HOME in the environment, the
# toolkit, or pip's wheels (PyTorch brings them), whose library is libNAME.so.VERSION alone; then from where systems
# install.
function(foretrain_find name header version)
  string(TOUPPER ${name} upper)
  if(NOT DEFINED FORETRAIN_WHEELS)
    execute_process(COMMAND python3 -c "import nvidia; print(list(nvidia.__path__)[0])" OUTPUT_VARIABLE wheels
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(FORETRAIN_WHEELS "${wheels}" CACHE PATH "Where pip's packages of NVIDIA's libraries lie")
  endif()
  find_path(${upper}_HEADERS ${header}
            HINTS $ENV{${upper}_HOME}/include ${CUDAToolkit_INCLUDE_DIRS} ${FORETRAIN_WHEELS}/${name}/include)
  find_library(${upper}_LIBRARY NAMES_PER_DIR NAMES ${name} lib${name}.so.${version}
               HINTS $ENV{${upper}_HOME}/lib ${CUDAToolkit_LIBRARY_DIR} ${FORETRAIN_WHEELS}/${name}/lib)
endfunction()
