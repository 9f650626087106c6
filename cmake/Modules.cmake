# Most files of these folders take longer to read their headers (HTTP, JSON, options, spans of plugins' tables) than to
# compile their own lines: up to twelve files of a folder are compiled at once. Off in the sanitizers' whole tiers, which
# so show that each file compiles alone. docs/decisions/0070 has the measurements.
# What most of them read is compiled once, for each way of compiling (patchbay_precompiled()).
option(PATCHBAY_TOGETHER "Compile several files of a folder at once, and common headers beforehand" ON)

# patchbay_sources(<result> <target> <root> <at once> <source>...): what the target compiles, sources or files that include
# as many of one folder, found from <root>. What they include is named as from any other checkout, for the compiler cache.
function(patchbay_sources result target root at_once)
    if(NOT PATCHBAY_TOGETHER)
        set(${result} ${ARGN} PARENT_SCOPE)
        return()
    endif()
    set(folders "")
    foreach(source ${ARGN})
        get_filename_component(folder "${source}" DIRECTORY)
        list(APPEND folders "${folder}")
    endforeach()
    list(REMOVE_DUPLICATES folders)
    set(joined "")
    foreach(folder ${folders})
        set(own ${ARGN})
        list(FILTER own INCLUDE REGEX "^${folder}/[^/]*$")
        list(SORT own)
        list(LENGTH own count)
        math(EXPR batches "(${count} + ${at_once} - 1) / ${at_once}")
        file(RELATIVE_PATH name "${root}" "${folder}")
        string(REPLACE "/" "_" name "${name}")
        foreach(batch RANGE 1 ${batches})
            math(EXPR first "(${batch} - 1) * ${count} / ${batches}")   # alike in size
            math(EXPR length "${batch} * ${count} / ${batches} - ${first}")
            list(SUBLIST own ${first} ${length} some)
            set(text "")
            foreach(source ${some})
                file(RELATIVE_PATH source "${root}" "${source}")
                string(APPEND text "#include \"${source}\"\n")
            endforeach()
            set(file "${CMAKE_CURRENT_BINARY_DIR}/together/${target}/${name}_${batch}.cpp")
            file(CONFIGURE OUTPUT "${file}" CONTENT "${text}")
            list(APPEND joined "${file}")
        endforeach()
    endforeach()
    set(${result} ${joined} PARENT_SCOPE)
endfunction()

# patchbay_precompiled(<name> <header> [PROGRAM] [DEPS …] [OPTIONS …]): a target whose common headers others may use, if
# they are compiled alike: with the same options and definitions, as libraries or, with PROGRAM, as programs.
function(patchbay_precompiled name header)
    cmake_parse_arguments(PARSE_ARGV 2 arg "PROGRAM" "" "DEPS;OPTIONS")
    if(NOT PATCHBAY_TOGETHER)
        return()
    endif()
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "int main() {}\n")
    if(arg_PROGRAM)
        add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    else()
        add_library(${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    endif()
    target_link_libraries(${name} PRIVATE spdlog::spdlog nlohmann_json::nlohmann_json ${arg_DEPS})
    target_compile_options(${name} PRIVATE ${arg_OPTIONS})
    target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/${header}")
endfunction()

# Sources in C, and those with options of their own, must have SKIP_PRECOMPILE_HEADERS.
function(patchbay_use_precompiled target name)
    if(NOT PATCHBAY_TOGETHER)
        return()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${name})
    # For the cache; and GCC 12's false warnings of the standard library, which it takes for the target's own then.
    set(gnu -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${gnu}>")
endfunction()

patchbay_precompiled(precompiled precompiled.hpp)
patchbay_precompiled(precompiled_quick precompiled.hpp OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1>)

# How the target is compiled. Warned of only where files are compiled alone: names of one file that another one hides,
# and types of an unnamed namespace in what the compiler takes for a header, which are no fault between files that are
# compiled at once. QUICK: a quarter faster, for what is in no step (options, tables, checks).
function(patchbay_compile_options target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK;SEPARATE" "" "")
    if(PATCHBAY_TOGETHER AND NOT arg_SEPARATE)
        target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
    if(arg_QUICK)
        target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    endif()
endfunction()

# patchbay_module(<name> [QUICK] [SEPARATE] [ALONE file.cpp …] [DEPS …]): the folder's *.cpp as a static library
# patchbay_<name>, which finds headers from the folder above it, as do those that link it. QUICK: as above. SEPARATE:
# no files are compiled at once, since they use the same names for different things. ALONE: these are not.
function(patchbay_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK;SEPARATE" "" "ALONE;DEPS")
    set(how ${ARGN})
    list(FILTER how INCLUDE REGEX "^(QUICK|SEPARATE)$")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
    if(sources)
        list(TRANSFORM arg_ALONE PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/${name}/")
        list(REMOVE_ITEM sources ${arg_ALONE} "")
        if(NOT arg_SEPARATE)
            patchbay_sources(sources patchbay_${name} "${CMAKE_CURRENT_SOURCE_DIR}" 12 ${sources})
        endif()
        add_library(patchbay_${name} STATIC ${sources} ${arg_ALONE})
        set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
        patchbay_compile_options(patchbay_${name} ${how})
        if(arg_QUICK)
            patchbay_use_precompiled(patchbay_${name} precompiled_quick)
        else()
            patchbay_use_precompiled(patchbay_${name} precompiled)
        endif()
        set(scope PUBLIC)
    else()
        add_library(patchbay_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(patchbay_${name} ${scope} "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(patchbay_${name} ${scope} patchbay_sdk ${arg_DEPS})
endfunction()

# patchbay_discover_tests(<program> [TIMEOUT s]): a ctest entry a test, labelled with the program.
function(patchbay_discover_tests program)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${program})
    set_property(GLOBAL APPEND PROPERTY PATCHBAY_TEST_PROGRAMS ${program})
endfunction()

# patchbay_unit_tests(<name> <folder> [DEPS …]): <folder>/*_test.cpp as one GoogleTest program, with its *_fixture.cpp.
# What a test file declares is in a namespace named as the file, so that up to six are compiled at once: their headers
# take longer than they do (docs/decisions/0070).
function(patchbay_unit_tests name folder)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPS")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*_test.cpp")
    if(NOT sources)
        return()
    endif()
    file(GLOB fixtures CONFIGURE_DEPENDS "${folder}/*_fixture.cpp")
    patchbay_sources(sources ${name} "${PROJECT_SOURCE_DIR}/tests" 6 ${sources})
    add_executable(${name} ${sources} ${fixtures})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/core/src")
    target_link_libraries(${name} PRIVATE ${arg_DEPS} spdlog::spdlog test_paths GTest::gmock_main GTest::gmock GTest::gtest)
    patchbay_use_precompiled(${name} precompiled_tests)
    patchbay_discover_tests(${name})
endfunction()
