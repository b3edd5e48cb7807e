# cmake -DBUILD=… -DFOLDER=… -P install_test.cmake: what `cmake --install` leaves works after it was moved, knows its own
# catalogue, and is a library for others.
cmake_minimum_required(VERSION 3.25)

function(expect what got expected)
  if(NOT "${got}" MATCHES "${expected}")
    message(SEND_ERROR "${what}: ${got}, where ${expected} is right")
  endif()
endfunction()

unset(ENV{FORETRAIN_SCENARIOS})
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/first RESULT_VARIABLE status
                OUTPUT_QUIET ERROR_VARIABLE errors)
expect("install" "${status}${errors}" "^0$")
file(RENAME ${FOLDER}/first ${FOLDER}/moved)

set(program ${FOLDER}/moved/bin/foretrain)
execute_process(COMMAND ${program} predict gpt2-xl-dgx-a100 RESULT_VARIABLE status OUTPUT_VARIABLE output)
expect("a prediction" "${status} ${output}" "^0 .*Step time")
# Two collectives that meet: the simulator's library was found.
execute_process(COMMAND ${program} predict sync-ring-4 --fidelity steps --json RESULT_VARIABLE status
                OUTPUT_VARIABLE installed)
execute_process(COMMAND ${BUILD}/foretrain predict sync-ring-4 --fidelity steps --json OUTPUT_VARIABLE built)
if(NOT installed STREQUAL built)
  message(SEND_ERROR "the installed program predicts otherwise: ${installed}")
endif()
foreach(file share/man/man1/foretrain.1 share/bash-completion/completions/foretrain
             share/zsh/vendor-completions/_foretrain share/fish/vendor_completions.d/foretrain.fish
             share/foretrain/scenarios/topics.yaml share/doc/foretrain/README.md)
  if(NOT EXISTS ${FOLDER}/moved/${file})
    message(SEND_ERROR "not installed: ${file}")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${FOLDER}/consumer -G Ninja
                        -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${FOLDER}/moved
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
expect("find_package(foretrain)" "${status}${errors}" "^0$")
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/consumer RESULT_VARIABLE status OUTPUT_VARIABLE output)
expect("a program on the library" "${status} ${output}" "^0")
execute_process(COMMAND ${CMAKE_COMMAND} -E env FORETRAIN_SCENARIOS=${FOLDER}/moved/share/foretrain/scenarios
                        ${FOLDER}/consumer/consumer sync-ring-4
                OUTPUT_VARIABLE output)
# 2 · 3/4 · 160 MB over links of 16 GB/s, 15 ms, and latencies
expect("its prediction" "${output}" "^0\\.015")
file(REMOVE_RECURSE ${FOLDER})
