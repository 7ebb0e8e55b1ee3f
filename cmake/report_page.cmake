# The pages of `--report`, embedded into trainsim_report: sources in sim/report/page/web, D3 5 from Debian's node-d3.
set(TRAINSIM_D3_FOLDER "/usr/share/nodejs" CACHE PATH "Folder with D3's modules, as Debian's node-d3 installs them")
# In the order in which they need each other.
set(d3_modules array collection color dispatch ease format interpolate selection time time-format timer transition drag
    zoom scale axis)
set(d3_files "")
foreach(module ${d3_modules})
  set(file ${TRAINSIM_D3_FOLDER}/d3-${module}/dist/d3-${module}.min.js)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "${file} is missing: install D3 5 with `apt-get install node-d3`, or name the folder that has "
                        "d3-array, d3-zoom, … with -DTRAINSIM_D3_FOLDER=…")
  endif()
  list(APPEND d3_files ${file})
endforeach()

set(page_folder ${CMAKE_CURRENT_SOURCE_DIR}/sim/report/page/web)
set(page_output ${CMAKE_CURRENT_BINARY_DIR}/page_template.cpp)
file(GLOB page_sources CONFIGURE_DEPENDS ${page_folder}/*)
add_custom_command(
  OUTPUT ${page_output}
  COMMAND ${CMAKE_COMMAND} -DWEB=${page_folder} "-DD3=${d3_files}" -DOUTPUT=${page_output}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${page_sources} ${d3_files} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_page.cmake
  COMMENT "Embedding the report's pages" VERBATIM)
target_sources(trainsim_report PRIVATE ${page_output})
