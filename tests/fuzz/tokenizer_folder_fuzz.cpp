// The files of a tokenizer without tokenizer.json: its configuration, vocab.json, merges.txt and added_tokens.json. The
// input is these files, parted by zero bytes, in a folder of this process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "text/tokenizer.hpp"

namespace {

using namespace patchbay::text;
namespace fs = std::filesystem;

const fs::path& folder() {
    static const fs::path out = [] {
        const fs::path made = fs::temp_directory_path() / ("patchbay-fuzz-" + std::to_string(getpid()));
        fs::create_directories(made);
        return made;
    }();
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 1 << 14) return 0;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    for (const char* name : {"tokenizer_config.json", "vocab.json", "merges.txt", "added_tokens.json"}) {
        const size_t end = std::min(rest.find('\0'), rest.size());
        std::ofstream(folder() / name, std::ios::binary) << rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const auto made = Tokenizer::load(folder());
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    for (const TokenId id : (*made)->encode("Hello  the <s> 12 caf\xC3\xA9 \xFF"))
        if (id < 0 || static_cast<uint32_t>(id) >= (*made)->vocab_size()) __builtin_trap();
    return 0;
}
