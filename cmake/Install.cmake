# What `cmake --install` puts where, and the packages that CPack makes of it: the programs, the plugins (each add_plugin()
# installs its own), the SDK with what find_package(patchbay) needs, and in share/patchbay what the program reads at run
# time: templates of plugins, the report's scripts, configurations, demo models and the first experiment, laid out as in
# the source tree. Everything is found relative to the prefix, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/patchbay)
set(support_folder share/patchbay)   # support_folder() of core/tools/cli
set(documents share/doc/patchbay)
set_target_properties(patchbay_sdk PROPERTIES EXPORT_NAME sdk)
install(TARGETS patchbay patchbay_probe patchbay_sdk EXPORT patchbayTargets
        RUNTIME DESTINATION bin)   # plugins are looked for in ../lib/patchbay/plugins
install(EXPORT patchbayTargets NAMESPACE patchbay:: DESTINATION ${package_folder})

install(DIRECTORY core/include/patchbay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(cmake/patchbayConfig.cmake.in "${CMAKE_BINARY_DIR}/patchbayConfig.cmake"
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/patchbayConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/patchbayConfig.cmake" "${CMAKE_BINARY_DIR}/patchbayConfigVersion.cmake"
              cmake/AddPlugin.cmake cmake/plugin.map
        DESTINATION ${package_folder})

install(DIRECTORY templates configs DESTINATION ${support_folder})
install(DIRECTORY scripts/report DESTINATION ${support_folder}/scripts PATTERN "__pycache__" EXCLUDE)
install(FILES scripts/requirements-report.txt DESTINATION ${support_folder}/scripts)
install(DIRECTORY models/demo-draft models/demo-target models/demo-eagle DESTINATION ${support_folder}/models)
install(DIRECTORY experiments/quickstart DESTINATION ${support_folder}/experiments)
install(DIRECTORY docs/ DESTINATION ${documents})
install(FILES README.md CHANGELOG.md LICENSE THIRD_PARTY.md DESTINATION ${documents})

# `cpack -G TGZ --config build/release/CPackConfig.cmake`; DEB needs dpkg-shlibdeps, which names the libraries' packages.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME patchbay)
set(CPACK_PACKAGE_VENDOR "The Patchbay authors")
set(CPACK_PACKAGE_CONTACT "The Patchbay authors <patchbay@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "An LLM inference engine in which every policy is a plugin")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES OFF)   # a manifest vouches for the bytes of its library
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, python3-matplotlib")
include(CPack)
