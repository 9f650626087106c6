// A folder of this process with the files of an input, which zero bytes part. For targets whose readers open files.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

inline const std::filesystem::path& fuzz_folder() {
    static const std::filesystem::path out = [] {
        const auto made = std::filesystem::temp_directory_path() / ("patchbay-fuzz-" + std::to_string(getpid()));
        std::filesystem::create_directories(made);
        return made;
    }();
    return out;
}

// A file that gets no bytes is not there.
inline void write_files(const uint8_t* data, size_t size, std::initializer_list<const char*> names) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    for (const char* name : names) {
        const size_t end = std::min(rest.find('\0'), rest.size());
        std::error_code ignored;
        std::filesystem::remove(fuzz_folder() / name, ignored);
        if (end > 0) std::ofstream(fuzz_folder() / name, std::ios::binary) << rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}
