# cmake -DFOLDER=… -P machine_test.cmake: what validate/cuda/machine.cmake chooses for machines that are not here.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../validate/cuda/machine.cmake)

function(expect what got expected)
  if(NOT "${got}" STREQUAL "${expected}")
    message(SEND_ERROR "${what}: ${got}, where ${expected} is right")
  endif()
endfunction()

set(cuda12 50;60;70;75;80;86;87;89;90;100;120)
set(cuda13 75;80;86;87;88;89;90;100;103;110;120;121)

foretrain_architectures(chosen "${cuda12}" "70;90")
expect("V100 beside H100, CUDA 12" "${chosen}" "70-real;90-real")
foretrain_architectures(chosen "${cuda12}" "90;90")
expect("two of a kind" "${chosen}" "90-real")
foretrain_architectures(chosen "${cuda12}" "121")
expect("newer than the toolkit" "${chosen}" "120-virtual")
foretrain_architectures(chosen "${cuda13}" "130")
expect("newer than any toolkit" "${chosen}" "121-virtual")
foretrain_architectures(chosen "${cuda13}" "")
expect("no GPU" "${chosen}" "75-real;80-real;86-real;89-real;90-real;100-real;100-virtual")

# Volta on CUDA 13 is an error that says what to do: asked of another process, since it ends this one.
if(DEFINED TOO_OLD)
  foretrain_architectures(chosen "${cuda13}" "70")
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -DTOO_OLD=1 -P ${CMAKE_CURRENT_LIST_FILE} RESULT_VARIABLE status
                ERROR_VARIABLE errors)
string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
if(status EQUAL 0 OR NOT errors MATCHES "as old as compute capability 70" OR NOT errors MATCHES "CUDACXX=")
  message(SEND_ERROR "V100 on CUDA 13: ${errors}")
endif()

# A wheel has no libcudnn.so, only libcudnn.so.9.
file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/cudnn/include/cudnn_graph.h "")
file(WRITE ${FOLDER}/cudnn/lib/libcudnn.so.9 "")
set(FORETRAIN_WHEELS ${FOLDER})
foretrain_find(cudnn cudnn_graph.h 9)
expect("headers of the wheel" "${CUDNN_HEADERS}" "${FOLDER}/cudnn/include")
expect("library of the wheel" "${CUDNN_LIBRARY}" "${FOLDER}/cudnn/lib/libcudnn.so.9")
