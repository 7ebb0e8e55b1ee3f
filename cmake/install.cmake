# `cmake --install`: the program, its presets (which it finds relative to itself, so that the tree can be moved), manual page,
# shell completions and documentation. The manual page and the completions are written by the program from its own options.
include(GNUInstallDirs)

file(RELATIVE_PATH data_from_program ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/trainsim)
target_compile_definitions(trainsim_config PRIVATE TRAINSIM_DATA_FROM_PROGRAM="${data_from_program}")

find_program(GZIP gzip REQUIRED)
set(generated ${CMAKE_BINARY_DIR}/generated)
set(manual ${generated}/trainsim.1.gz)
set(bash_completion ${generated}/trainsim.bash)
set(zsh_completion ${generated}/_trainsim)
set(fish_completion ${generated}/trainsim.fish)
file(MAKE_DIRECTORY ${generated})
add_custom_command(
  OUTPUT ${manual} ${bash_completion} ${zsh_completion} ${fish_completion}
  COMMAND trainsim manual --output ${generated}/trainsim.1
  COMMAND ${GZIP} -9nf ${generated}/trainsim.1
  COMMAND trainsim completion bash --output ${bash_completion}
  COMMAND trainsim completion zsh --output ${zsh_completion}
  COMMAND trainsim completion fish --output ${fish_completion}
  DEPENDS trainsim
  COMMENT "Writing the manual page and the shell completions"
  VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual} ${bash_completion} ${zsh_completion} ${fish_completion})

install(TARGETS trainsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY models topologies configs DESTINATION ${CMAKE_INSTALL_DATADIR}/trainsim
        FILES_MATCHING PATTERN "*.yaml")
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${bash_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trainsim)
install(FILES ${zsh_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${fish_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES cmake/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Only the Debian package installs it; elsewhere pip does, into the folder of the Python that asks.
install(DIRECTORY python/trainsim DESTINATION lib/python3/dist-packages COMPONENT python EXCLUDE_FROM_ALL
        PATTERN "__pycache__" EXCLUDE)
