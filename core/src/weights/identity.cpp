#include <algorithm>

#include "base/json_file.hpp"
#include "base/sha256.hpp"
#include "weights/gguf_model.hpp"
#include "weights/loader.hpp"

namespace patchbay::weights {

Result<std::string> model_identity(const std::filesystem::path& model) {
    constexpr uint64_t kMaxConfigBytes = 16 << 20, kSample = 64;
    std::string text;
    if (is_gguf(model)) {
        PB_TRY(const GgufFile file, open_gguf(model));
        text.assign(reinterpret_cast<const char*>(file.gguf.bytes.data()), file.gguf.header.bytes);
    } else {
        PB_TRY(text, read_whole_file(model / "config.json", kMaxConfigBytes));
    }
    PB_TRY(const auto checkpoint, Checkpoint::open(model));
    for (const std::string& name : checkpoint->names()) {
        text += '\0' + name;
        const auto view = checkpoint->tensor(name);
        if (!view) continue; // a dtype that is not supported: its name has to do
        text += '\0' + std::to_string(static_cast<int>(view->encoding));
        for (const int64_t n : view->shape) text += ',' + std::to_string(n);
        const uint64_t sample = std::min(view->bytes, kSample);
        text.append(reinterpret_cast<const char*>(view->data) + (view->bytes - sample) / 2, sample);
    }
    return sha256_hex(text);
}

}  // namespace patchbay::weights
