#include "host/plugin_entry.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "patchbay/abi.h"

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;

// Up to its section headers, which linkers write last.
bool is_whole_library(std::ifstream& in, uint64_t size) {
    Elf64_Ehdr header{};
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    return in && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_shoff != 0 && header.e_shoff <= size &&
           uint64_t{header.e_shnum} * header.e_shentsize <= size - header.e_shoff;
}

bool contains(std::ifstream& in, std::string_view word) {
    constexpr size_t kPart = 1 << 20;  // bytes
    std::string part;
    do {
        const size_t kept = std::min(part.size(), word.size() - 1);  // it may lie across two parts
        part.erase(0, part.size() - kept);
        part.resize(kept + kPart);
        in.read(part.data() + kept, kPart);
        part.resize(kept + static_cast<size_t>(in.gcount()));
        if (part.find(word) != part.npos) return true;
    } while (in);
    return false;
}

}  // namespace

bool is_no_plugin(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return false;  // reading a pipe would wait for ever
    const uint64_t size = fs::file_size(file, error);
    std::ifstream in(file, std::ios::binary);
    if (error || !in || !is_whole_library(in, size)) return false;
    in.seekg(0);
    const bool named = contains(in, PB_ENTRY_SYMBOL);
    return !named && in.eof();
}

}  // namespace patchbay::host
