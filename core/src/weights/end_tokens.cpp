#include "weights/end_tokens.hpp"

#include <algorithm>
#include <set>

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay::weights {
namespace {

Result<> collect(const FlatConfig& from, const std::string& where, uint32_t vocab_size, std::set<int32_t>& out) {
    const std::string name = "eos_token_id", item = name + ".";
    for (const auto& [key, value] : from) {
        const bool of_list = key.starts_with(item) && parse_number<size_t>(std::string_view(key).substr(item.size()));
        if (key != name && !key.starts_with(item)) continue;
        const auto id = parse_number<uint32_t>(value);
        if (key == name && (value == "null" || value == "[]")) continue;
        if ((key != name && !of_list) || !id || *id >= vocab_size)
            return invalid(where + ": " + printable(key) + " is " + printable(value, 40) +
                           ", expected a token id below " + std::to_string(vocab_size));
        out.insert(static_cast<int32_t>(*id));
    }
    return {};
}

}  // namespace

Result<std::vector<int32_t>> end_tokens(const FlatConfig& config, const std::filesystem::path& folder,
                                        uint32_t vocab_size) {
    std::set<int32_t> ids;
    PB_CHECK(collect(config,
                     folder.empty()    ? "shape"
                     : is_gguf(folder) ? folder.string()
                                       : (folder / "config.json").string(),
                     vocab_size, ids));
    const std::filesystem::path generation = folder / "generation_config.json";
    std::error_code error;
    if (!folder.empty() && std::filesystem::exists(generation, error)) {
        PB_TRY(const FlatConfig settings, read_json_flat(generation));
        PB_CHECK(collect(settings, generation.string(), vocab_size, ids));
    }
    return std::vector<int32_t>(ids.begin(), ids.end());
}

}  // namespace patchbay::weights
