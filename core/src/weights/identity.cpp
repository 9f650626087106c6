#include <algorithm>

#include "base/json_file.hpp"
#include "base/sha256.hpp"
#include "weights/loader.hpp"

namespace patchbay::weights {

Result<std::string> model_identity(const std::filesystem::path& folder) {
    constexpr uint64_t kMostConfigBytes = 16 << 20, kSample = 64;
    PB_TRY(std::string text, read_whole_file(folder / "config.json", kMostConfigBytes));
    PB_TRY(const auto checkpoint, Checkpoint::open(folder));
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
