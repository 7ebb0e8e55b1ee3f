# trainsim_module(NAME [MAY_INCLUDE modules…] [LIBRARIES targets…])
# One static library per folder of sim/. MAY_INCLUDE is the list of modules whose headers it may include; it is also
# what it links. tests/layers_test.py reads these calls and fails on any include outside them.
function(trainsim_module name)
  cmake_parse_arguments(ARG "" "" "MAY_INCLUDE;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sim/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(trainsim_${name} STATIC ${sources})
  target_include_directories(trainsim_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(trainsim_${name} PRIVATE trainsim_options ${ARG_LIBRARIES})
  foreach(module ${ARG_MAY_INCLUDE})
    target_link_libraries(trainsim_${name} PUBLIC trainsim_${module})
  endforeach()
endfunction()
