# Puts the report's pages together and writes them as C++ strings. The frame that all pages have is web/page.html with the
# style, the definitions, D3's modules and the scripts that all share in place of the marks @STYLE@, @DEFINITIONS@, @D3@,
# @SHARED@ and @END@; each page has sections (web/NAME.html) and scripts of its own. Sections of pages with Pareto fronts
# have @FRONT@ where web/front.html goes.
#   cmake -DWEB=folder -DD3="module.js;…" -DOUTPUT=file.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.22)
set(shared begin.js format.js dom.js charts.js frame.js)
set(pages run sweep compare search)
set(scripts_run waterfall.js summary.js whole_run.js timeline.js memory.js network.js kernels.js plan.js answers.js run.js)
set(scripts_sweep front.js points.js curves.js heat_map.js sweep.js)
set(scripts_compare waterfall.js compare.js)
set(scripts_search front.js search.js)

# Reads files of WEB one after the other.
function(read_scripts variable)
  set(all "")
  foreach(name IN LISTS ARGN)
    file(READ ${WEB}/${name} text)
    string(APPEND all "${text}\n")
  endforeach()
  set(${variable} "${all}" PARENT_SCOPE)
endfunction()

function(check_script text)
  if("${text}" MATCHES "</[sS][cC][rR][iI][pP][tT]" OR "${text}" MATCHES "\\)page\"")
    message(FATAL_ERROR "a script contains what would end it; the page can't be embedded")
  endif()
endfunction()

file(READ ${WEB}/page.html frame)
file(READ ${WEB}/style.css style)
file(READ ${WEB}/definitions.html definitions)
file(READ ${WEB}/d3-license.txt license)
file(READ ${WEB}/front.html front)
set(d3 "/*\n${license}*/\n")
foreach(module IN LISTS D3)
  file(READ ${module} text)
  string(APPEND d3 "${text}\n")
endforeach()
read_scripts(shared_scripts ${shared})
read_scripts(end end.js)
foreach(code IN ITEMS "${d3}" "${shared_scripts}" "${end}")
  check_script("${code}")
endforeach()
string(REPLACE "@STYLE@" "${style}" frame "${frame}")
string(REPLACE "@DEFINITIONS@" "${definitions}" frame "${frame}")
string(REPLACE "@D3@" "${d3}" frame "${frame}")
string(REPLACE "@SHARED@" "${shared_scripts}" frame "${frame}")
string(REPLACE "@END@" "${end}" frame "${frame}")

set(templates "")
foreach(page IN LISTS pages)
  file(READ ${WEB}/${page}.html sections)
  string(REPLACE "@FRONT@" "${front}" sections "${sections}")
  read_scripts(script ${scripts_${page}})
  check_script("${script}")
  string(SUBSTRING ${page} 0 1 initial)
  string(TOUPPER ${initial} initial)
  string(SUBSTRING ${page} 1 -1 rest)
  string(APPEND templates "const PageTemplate k${initial}${rest}Page = {\"${page}\", R\"page(${sections})page\", R\"page(${script})page\"};\n\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/embed_page.cmake.
#include \"sim/report/page/template.hpp\"

namespace trainsim::report {

const std::string_view kPageFrame = R\"page(${frame})page\";

${templates}}  // namespace trainsim::report
")
