# add_plugin(<name> [VERSION v] [SOURCES a.cpp …] [LIBRARIES t …] [NO_PROBE])
#
# The whole build of a plugin, in the tree and from an installed SDK alike. SOURCES defaults to <name>.cpp. The library
# exports one symbol and leaves nothing unresolved.
include_guard(GLOBAL)
set(PATCHBAY_ADD_PLUGIN_DIR "${CMAKE_CURRENT_LIST_DIR}")

if(NOT TARGET all_plugins)
    add_custom_target(all_plugins)
endif()

function(add_plugin name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_PROBE" "VERSION" "SOURCES;LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "add_plugin(${name}): unknown argument: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_SOURCES)
        set(arg_SOURCES ${name}.cpp)
    endif()
    if(NOT arg_VERSION)
        set(arg_VERSION "0.1.0")
    endif()
    get_filename_component(kind "${CMAKE_CURRENT_SOURCE_DIR}" DIRECTORY)
    get_filename_component(kind "${kind}" NAME)
    set(target plugin_${kind}_${name})
    add_library(${target} MODULE ${arg_SOURCES})
    add_dependencies(all_plugins ${target})
    target_link_libraries(${target} PRIVATE patchbay_sdk ${arg_LIBRARIES})
    target_compile_definitions(${target} PRIVATE
        PATCHBAY_PLUGIN_NAME="${name}" PATCHBAY_PLUGIN_VERSION="${arg_VERSION}"
        PATCHBAY_PLUGIN_BUILD="${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION}/$<CONFIG>")
    set_target_properties(${target} PROPERTIES
        PREFIX "" SUFFIX ".so" OUTPUT_NAME "${kind}-${name}"
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/patchbay/plugins"
        LINK_DEPENDS "${PATCHBAY_ADD_PLUGIN_DIR}/plugin.map")
    target_compile_options(${target} PRIVATE
        $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>)
    target_link_options(${target} PRIVATE "LINKER:--version-script=${PATCHBAY_ADD_PLUGIN_DIR}/plugin.map")
    if(NOT PATCHBAY_SANITIZE)   # sanitized plugins leave the runtime to the host
        target_link_options(${target} PRIVATE "LINKER:-z,defs")
    endif()
endfunction()
