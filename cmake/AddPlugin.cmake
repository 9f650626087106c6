# add_plugin(<name> [VERSION v] [SOURCES a.cpp …] [LIBRARIES t …] [NO_PROBE] [KEEP_REFUSED])
#
# The whole build of a plugin, in the tree and from an installed SDK alike. SOURCES defaults to <name>.cpp. The library
# exports one symbol, leaves nothing unresolved, and is probed: a plugin that breaks its contract does not build. With
# KEEP_REFUSED the build goes on without it and says so: for what is checked on hardware that a machine may have.
# Target plugin_<name>, library <name>.so. In this source tree, where the parent folder is named as a kind, they are
# plugin_<kind>_<name> and <kind>-<name>.so.
include_guard(GLOBAL)

# The words of kinds, "scheduler" and so on, from the list in this SDK's abi/kinds.h.
find_file(PATCHBAY_KINDS_H patchbay/abi/kinds.h NO_DEFAULT_PATH NO_CACHE REQUIRED
    PATHS "${CMAKE_CURRENT_LIST_DIR}/../core/include" "${CMAKE_CURRENT_LIST_DIR}/../../../include")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PATCHBAY_KINDS_H}")
file(READ "${PATCHBAY_KINDS_H}" PATCHBAY_KINDS)
string(REGEX MATCHALL "    X\\([A-Z_]+, [a-z_]+" PATCHBAY_KINDS "${PATCHBAY_KINDS}")
list(TRANSFORM PATCHBAY_KINDS REPLACE ".*, " "")
set_property(GLOBAL PROPERTY PATCHBAY_KINDS ${PATCHBAY_KINDS})

if(NOT TARGET all_plugins)
    add_custom_target(all_plugins)
endif()

# The file of plugin <name> of this folder, without ".so", and its target.
function(patchbay_plugin_names name file_out target_out)
    set(file "${name}")
    get_filename_component(kind "${CMAKE_CURRENT_SOURCE_DIR}" DIRECTORY)
    get_filename_component(kind "${kind}" NAME)
    get_property(kinds GLOBAL PROPERTY PATCHBAY_KINDS)
    if(kind IN_LIST kinds AND NOT TARGET patchbay::sdk)   # out of the tree a folder may have any name
        set(file "${kind}-${name}")
    endif()
    string(REPLACE "-" "_" target "plugin_${file}")
    set(${file_out} "${file}" PARENT_SCOPE)
    set(${target_out} "${target}" PARENT_SCOPE)
endfunction()

function(add_plugin name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_PROBE;KEEP_REFUSED" "VERSION" "SOURCES;LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "add_plugin(${name}): unknown argument: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_SOURCES)
        set(arg_SOURCES ${name}.cpp)
    endif()
    if(NOT arg_VERSION)
        set(arg_VERSION "0.1.0")
    endif()
    set(sdk patchbay_sdk)
    set(probe patchbay_probe)
    if(TARGET patchbay::sdk)   # out of the tree
        set(sdk patchbay::sdk)
        set(probe patchbay::probe)
    endif()
    patchbay_plugin_names(${name} file target)
    add_library(${target} MODULE ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE ${sdk} ${arg_LIBRARIES})
    set(c "${CMAKE_C_COMPILER_ID}-${CMAKE_C_COMPILER_VERSION}")
    set(cxx "${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION}")
    target_compile_definitions(${target} PRIVATE
        PATCHBAY_PLUGIN_NAME="${name}" PATCHBAY_PLUGIN_VERSION="${arg_VERSION}"
        PATCHBAY_PLUGIN_BUILD="$<IF:$<COMPILE_LANGUAGE:C>,${c},${cxx}>/$<CONFIG>")
    set_target_properties(${target} PROPERTIES
        PREFIX "" SUFFIX ".so" OUTPUT_NAME "${file}"
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/patchbay/plugins"
        LINK_DEPENDS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
    target_compile_options(${target} PRIVATE
        $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>)
    target_link_options(${target} PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
    if(NOT PATCHBAY_SANITIZE)   # sanitized plugins leave the runtime to the host
        target_link_options(${target} PRIVATE "LINKER:-z,defs")
    endif()
    if(NOT arg_NO_PROBE)
        set(manifest "${CMAKE_BINARY_DIR}/lib/patchbay/plugins/${file}.plugin.json")
        add_dependencies(all_plugins ${target})
        add_dependencies(${target} ${probe})
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "$<TARGET_FILE:${probe}>") # other checks: probed again
        set(optional "")
        set(byproducts BYPRODUCTS "${manifest}")
        if(arg_KEEP_REFUSED)   # it may have no manifest
            set(optional OPTIONAL)
            set(byproducts "")
        endif()
        add_custom_command(TARGET ${target} POST_BUILD
            COMMAND $<TARGET_FILE:${probe}> $<$<BOOL:${arg_KEEP_REFUSED}>:--keep-refused> $<TARGET_FILE:${target}>
            ${byproducts} VERBATIM COMMAND_EXPAND_LISTS)
        # Copied byte by byte: the manifest vouches for these and no others.
        install(FILES $<TARGET_FILE:${target}> "${manifest}" DESTINATION lib/patchbay/plugins COMPONENT plugins
                PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ ${optional})
    endif()
endfunction()

# add_plugin_test(<name> [SOURCES a.cpp …] [LIBRARIES GTest::gtest_main …])
#
# A test in C++ of the plugin that add_plugin(<name>) builds, by patchbay/testing.hpp: a program test_<name>, and a ctest
# of that name. SOURCES defaults to test.cpp. In it PATCHBAY_TEST_PLUGIN is the library's path and
# PATCHBAY_SHIPPED_PLUGINS the folder of the plugins that ship.
function(add_plugin_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "add_plugin_test(${name}): unknown argument: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    patchbay_plugin_names(${name} file target)
    if(NOT TARGET ${target})
        message(FATAL_ERROR "add_plugin_test(${name}): no add_plugin(${name}) before it in this folder")
    endif()
    if(NOT arg_SOURCES)
        set(arg_SOURCES test.cpp)
    endif()
    set(sdk patchbay_sdk)
    set(probe patchbay_probe)
    if(TARGET patchbay::sdk)   # out of the tree
        set(sdk patchbay::sdk)
        set(probe patchbay::probe)
    endif()
    add_executable(test_${name} ${arg_SOURCES})
    target_link_libraries(test_${name} PRIVATE ${sdk} ${arg_LIBRARIES} ${CMAKE_DL_LIBS})
    target_compile_definitions(test_${name} PRIVATE
        PATCHBAY_TEST_PLUGIN="$<TARGET_FILE:${target}>" PATCHBAY_TESTING_PROBE="$<TARGET_FILE:${probe}>"
        PATCHBAY_SHIPPED_PLUGINS="$<TARGET_FILE_DIR:${probe}>/../lib/patchbay/plugins")
    add_dependencies(test_${name} ${target})
    add_test(NAME test_${name} COMMAND test_${name})
endfunction()
