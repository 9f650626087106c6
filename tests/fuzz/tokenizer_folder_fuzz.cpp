// The files of a tokenizer without tokenizer.json: its configuration, vocab.json, merges.txt and added_tokens.json. The
// input is these files, parted by zero bytes, in a folder of this process.
#include <cstddef>
#include <cstdint>

#include "fuzz_folder.hpp"
#include "text/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 1 << 14) return 0;
    using namespace patchbay::text;
    write_files(data, size, {"tokenizer_config.json", "vocab.json", "merges.txt", "added_tokens.json"});
    const auto made = Tokenizer::load(fuzz_folder());
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    for (const TokenId id : (*made)->encode("Hello  the <s> 12 caf\xC3\xA9 \xFF"))
        if (id < 0 || static_cast<uint32_t>(id) >= (*made)->vocab_size()) __builtin_trap();
    return 0;
}
