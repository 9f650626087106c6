# What `cmake --install` puts where: the programs, the plugins (each add_plugin() installs its own), and the SDK with
# what find_package(patchbay) needs. Everything is found relative to the prefix, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/patchbay)
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
install(FILES LICENSE THIRD_PARTY.md DESTINATION share/doc/patchbay)
