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
install(FILES scripts/requirements-report.txt scripts/requirements-train.txt scripts/compare_with_transformers.py
        DESTINATION ${support_folder}/scripts)
install(PROGRAMS scripts/compare-with-transformers DESTINATION ${support_folder}/scripts)
install(DIRECTORY models/demo-draft models/demo-target models/demo-eagle DESTINATION ${support_folder}/models)
install(DIRECTORY experiments DESTINATION ${support_folder})

# The documentation lies as in the source tree, with all that its pages link to: links of relative paths hold in both. What
# is installed elsewhere is linked to.
install(DIRECTORY docs plugins DESTINATION ${documents} PATTERN "__pycache__" EXCLUDE)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE THIRD_PARTY.md DESTINATION ${documents})
install(DIRECTORY tests/scenarios DESTINATION ${documents}/tests)
foreach(file sdk/again/again.c specimens/specimens_test.cpp abi/layout.txt abi/frozen/README.md abi/kept/README.md)
    get_filename_component(folder tests/${file} DIRECTORY)
    install(FILES tests/${file} DESTINATION ${documents}/${folder})
endforeach()
install(CODE "
    function(link_to target link)
        set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${documents}/\${link}\")
        get_filename_component(folder \"\${link}\" DIRECTORY)
        file(MAKE_DIRECTORY \"\${folder}\")
        file(REMOVE_RECURSE \"\${link}\")
        file(CREATE_LINK \"\${target}\" \"\${link}\" SYMBOLIC)
    endfunction()
    link_to(../../../../${CMAKE_INSTALL_INCLUDEDIR} core/include)
    foreach(folder templates configs experiments models scripts)
        link_to(../../patchbay/\${folder} \${folder})
    endforeach()")

# `cpack -G TGZ --config build/release/CPackConfig.cmake`; DEB needs dpkg-shlibdeps, which names the libraries' packages.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME patchbay)
set(CPACK_PACKAGE_VENDOR "The Patchbay authors")
# The maintainer of a package is the one who builds it, found as Debian's own tools do.
set(PATCHBAY_MAINTAINER "" CACHE STRING "maintainer of packages, \"Name <address>\"; empty: from $DEBFULLNAME and $DEBEMAIL")
set(maintainer "${PATCHBAY_MAINTAINER}")
if(NOT maintainer)
    set(name "$ENV{DEBFULLNAME}")
    set(address "$ENV{DEBEMAIL}")
    if(NOT name)
        set(name "The Patchbay authors")
    endif()
    if(NOT address)
        cmake_host_system_information(RESULT machine QUERY HOSTNAME)
        set(user "$ENV{USER}")
        if(NOT user)
            set(user root)
        endif()
        set(address "${user}@${machine}")
    endif()
    set(maintainer "${name} <${address}>")
endif()
set(CPACK_PACKAGE_CONTACT "${maintainer}")
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
