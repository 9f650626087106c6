# Every library the build needs, all of them Debian packages (scripts/install-deps installs them).
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS filesystem)   # Boost.DLL is header-only over it
find_package(yaml-cpp 0.7 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(prometheus-cpp REQUIRED)                     # its config names no version; 1.0 is tested
find_package(SQLite3 REQUIRED)
find_package(ICU 72 REQUIRED COMPONENTS uc i18n)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)        # SHA-256
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(NCURSESW REQUIRED IMPORTED_TARGET ncursesw)   # libncurses-dev
# Its -D_DEFAULT_SOURCE says less than the _GNU_SOURCE of C++ compilers, and would part its users from common headers.
set_property(TARGET PkgConfig::NCURSESW PROPERTY INTERFACE_COMPILE_OPTIONS "")
# Debian's GlooConfig has no version to ask for. Without it the CPU device is one rank and says so.
find_package(Gloo QUIET)   # libgloo-dev
if(NOT TARGET gloo)
    message(STATUS "No Gloo (libgloo-dev): the device cpu will refuse tensor_parallel_size above 1")
endif()
if(PATCHBAY_TESTS)
    find_package(GTest 1.12 REQUIRED)
endif()
if(PATCHBAY_BENCH)
    find_package(benchmark 1.7 REQUIRED)
endif()
