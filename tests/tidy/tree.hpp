// The source tree as the tidy tests read it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace patchbay::tidy {

struct SourceText {
    std::string path;                  // relative to the source folder, "core/src/kv/block_pool.cpp"
    std::vector<std::string> lines;
};

// Every C and C++ file of the folders that hold code.
const std::vector<SourceText>& sources();
std::string read(const std::filesystem::path&);
// A source without comments, and without what is in quotes. Its lines stay where they are.
std::string code_of(const SourceText&);
bool starts_with_any(const std::string& path, const std::vector<std::string>& prefixes);

}  // namespace patchbay::tidy
