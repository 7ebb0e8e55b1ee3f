# Puts the report's page together and writes it as a C++ string: web/page.html with its style, D3's modules and its own
# scripts in place of the marks @STYLE@, @D3@ and @SCRIPT@.
#   cmake -DWEB=folder -DD3="module.js;…" -DSCRIPTS="a.js;…" -DOUTPUT=file.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.22)
file(READ ${WEB}/page.html page)
file(READ ${WEB}/style.css style)
file(READ ${WEB}/d3-license.txt license)
set(d3 "/*\n${license}*/\n")
foreach(module IN LISTS D3)
  file(READ ${module} text)
  string(APPEND d3 "${text}\n")
endforeach()
set(script "")
foreach(name IN LISTS SCRIPTS)
  file(READ ${WEB}/${name} text)
  string(APPEND script "${text}\n")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@D3@" "${d3}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
foreach(code IN ITEMS "${d3}" "${script}")
  if("${code}" MATCHES "</[sS][cC][rR][iI][pP][tT]" OR "${code}" MATCHES "\\)page\"")
    message(FATAL_ERROR "a script contains what would end it; the page can't be embedded")
  endif()
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/embed_page.cmake.
#include \"sim/report/page/template.hpp\"

namespace trainsim::report {

const std::string_view kPageTemplate = R\"page(${page})page\";

}  // namespace trainsim::report
")
