#include "host/plugin_entry.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

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

namespace {

template <class T>
std::vector<T> read_all(std::ifstream& in, uint64_t at, uint64_t bytes, uint64_t file_size) {
    if (at > file_size || bytes > file_size - at) return {};
    std::vector<T> out(bytes / sizeof(T));
    in.seekg(static_cast<std::streamoff>(at));
    in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(T)));
    return in ? out : std::vector<T>();
}

// Of a class outside of an unnamed namespace. Other unique symbols, mostly constants of libraries, are let through.
bool is_table(std::string_view symbol) {
    return symbol.starts_with("_ZN8patchbay6detail") && (symbol.ends_with("E5tableE") || symbol.ends_with("E4listE"));
}

}  // namespace

std::string unique_table(const fs::path& file) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    std::ifstream in(file, std::ios::binary);
    if (error || !in || !is_whole_library(in, size)) return "";
    const auto header = read_all<Elf64_Ehdr>(in, 0, sizeof(Elf64_Ehdr), size);
    if (header.empty() || header[0].e_shentsize != sizeof(Elf64_Shdr)) return "";
    const auto sections =
        read_all<Elf64_Shdr>(in, header[0].e_shoff, uint64_t{header[0].e_shnum} * sizeof(Elf64_Shdr), size);
    for (const Elf64_Shdr& s : sections) {
        if (s.sh_type != SHT_DYNSYM || s.sh_link >= sections.size()) continue;
        const Elf64_Shdr& names = sections[s.sh_link];
        const auto text = read_all<char>(in, names.sh_offset, names.sh_size, size);
        for (const Elf64_Sym& symbol : read_all<Elf64_Sym>(in, s.sh_offset, s.sh_size, size)) {
            if (ELF64_ST_BIND(symbol.st_info) != STB_GNU_UNIQUE || symbol.st_name >= text.size()) continue;
            const char* const name = text.data() + symbol.st_name;
            const std::string_view whole(name, strnlen(name, text.size() - symbol.st_name));
            if (is_table(whole)) return std::string(whole);
        }
    }
    return "";
}

}  // namespace patchbay::host
