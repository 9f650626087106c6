// Files that are written from their beginning, and whether all of it came onto the disk.
#pragma once
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/refusals.hpp"

namespace patchbay {

inline Failure cannot_write(const std::string& path) {
    return fail(code_of_open(errno), "cannot write " + path + ": " + std::strerror(errno));
}

inline Result<std::ofstream> open_output(const std::string& path) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) return cannot_write(path);
    return out;
}

inline Result<> close_output(std::ofstream& out, const std::string& path) {
    out.close();
    if (!out) return cannot_write(path);
    return {};
}

}  // namespace patchbay
