# embed_text(OUTPUT NAMESPACE NAME FILE): writes a C++ file that defines `const char* const NAMESPACE::NAME`, the text of
# FILE. It is written anew when FILE changes.
function(embed_text output namespace name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  # Compilers take a literal of any length, but the standard promises no more than 65536 letters.
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "// Written by cmake/embed_text.cmake from @file@.
namespace @namespace@ {
extern const char* const @name@;
const char* const @name@ = R\"embedded(@text@)embedded\";
}  // namespace @namespace@
")
endfunction()
