# What `cmake --install` puts where: the program, the SDK, and what find_package(patchbay) needs.
