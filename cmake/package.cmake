# `cpack -G DEB` in the build folder: a Debian package of what `cmake --install` installs, and of the Python package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainsim)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};trainsim;ALL;/;${CMAKE_BINARY_DIR};trainsim;python;/")
# What is installed must not depend on the umask of whoever packs it.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The trainsim authors <trainsim@localhost>")
set(CPACK_PACKAGE_CONTACT ${CPACK_DEBIAN_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator of distributed training of large models")
set(CPACK_PACKAGE_DESCRIPTION
    "trainsim predicts one training step of a large language model on a GPU cluster
that need not exist yet. YAML files name GPUs, network, model and parallelism
plan; the program replays the step as a discrete-event simulation and reports
step time, pipeline bubble, scaling efficiency, MFU and peak memory, and where
each of them comes from.

The package also holds a Python module that runs the program.")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "graphviz, python3 (>= 3.11)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3-pandas)
include(CPack)
