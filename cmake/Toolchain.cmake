# Language level, warnings, sanitizers, and the fast tools that are used when they are there.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# -g1: line tables for profiles and backtraces without the size of full debug information.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")

set(warnings -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
set(cuda_warnings -Xcompiler=-Wall,-Wextra)   # nvcc's own C++ does not bear -Wshadow
if(PATCHBAY_WERROR)
    list(APPEND warnings -Werror)
    list(APPEND cuda_warnings -Werror=all-warnings -Xcompiler=-Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${warnings}>" "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_warnings}>")
# Collecting garbage takes GCC a tenth of its time: not before it has 600 MB of it, which is seldom.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=600000>")

if(PATCHBAY_SANITIZE)
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1") # instrumented code takes a third less to compile than with -O2
    add_compile_options(-fsanitize=${PATCHBAY_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${PATCHBAY_SANITIZE})
    if(PATCHBAY_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # its false warnings of instrumented code, in headers of Boost
        add_compile_options(-Wno-maybe-uninitialized)
        if(PATCHBAY_SANITIZE MATCHES "thread")
            add_compile_options(-Wno-tsan)
        endif()
    endif()
endif()

# Paths are relative to the checkout, so that another checkout of the same sources finds its objects in the cache.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})   # without these nothing with a precompiled header
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

foreach(linker mold lld)
    find_program(PATCHBAY_LINKER_${linker} NAMES ${linker} ld.${linker})
    if(PATCHBAY_LINKER_${linker})
        add_link_options(-fuse-ld=${linker})
        break()
    endif()
endforeach()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
