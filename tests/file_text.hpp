// Whole files.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace patchbay {

inline std::string file_text(const std::filesystem::path& file) { // empty: it cannot be read
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace patchbay
