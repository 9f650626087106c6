# patchbay_module(<name> [DEPS …]): the folder's *.cpp as a static library patchbay_<name>, which finds headers from the
# folder above it, as do those that link it.
function(patchbay_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
    if(sources)
        add_library(patchbay_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(patchbay_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(patchbay_${name} ${scope} "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(patchbay_${name} ${scope} patchbay_sdk ${arg_DEPS})
endfunction()

# patchbay_precompile(<target> <header>…): headers of others that all of its files include. Only GCC: Clang and ccache want
# other options.
function(patchbay_precompile target)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        if(NOT "REUSE_FROM" IN_LIST ARGN)
            list(PREPEND ARGN PRIVATE)
        endif()
        target_precompile_headers(${target} ${ARGN})
        target_compile_options(${target} PRIVATE -fpch-preprocess)   # for ccache
    endif()
endfunction()

# patchbay_discover_tests(<program> [TIMEOUT s]): a ctest entry a test, labelled with the program.
function(patchbay_discover_tests program)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${program})
    set_property(GLOBAL APPEND PROPERTY PATCHBAY_TEST_PROGRAMS ${program})
    patchbay_precompile(${program} REUSE_FROM test_headers)
endfunction()

# patchbay_unit_tests(<name> <folder> [DEPS …]): <folder>/*_test.cpp as one GoogleTest program.
function(patchbay_unit_tests name folder)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPS")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*_test.cpp" "${folder}/*_fixture.cpp")
    if(NOT sources)
        return()
    endif()
    add_executable(${name} ${sources})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/core/src")
    target_link_libraries(${name} PRIVATE ${arg_DEPS} test_paths GTest::gmock_main GTest::gmock GTest::gtest)
    patchbay_discover_tests(${name})
endfunction()
