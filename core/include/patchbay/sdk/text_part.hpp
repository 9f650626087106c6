// patchbay/sdk/text_part.hpp - the text model's configuration inside that of a model that also sees images. For model
// plugins that compute the text of such models.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

// text_config, with what such a model has where its config.json does not say; tie_word_embeddings may be that of the
// whole. The values live as long as those of the whole.
struct TextPart {
    using Default = std::pair<std::string_view, std::string_view>; // a key and its value; literals
    TextPart(const ModelConfig& whole, std::initializer_list<Default> defaults) : config(whole.raw) {
        constexpr std::string_view kPrefix = "text_config.", kTied = "tie_word_embeddings";
        for (uint32_t i = 0; i < whole.raw.count; ++i) {
            const pb_setting& item = whole.raw.items[i];
            if (view(item.key).starts_with(kPrefix))
                items.push_back({{item.key.data + kPrefix.size(), item.key.size - kPrefix.size()}, item.value});
        }
        const auto add_missing = [&](std::string_view key, std::string_view value) {
            if (!whole.find(std::string(kPrefix) + std::string(key)))
                items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
        };
        for (const auto& [key, value] : defaults) add_missing(key, value);
        if (const auto tied = whole.find(kTied)) add_missing(kTied, *tied);
        config.count = static_cast<uint32_t>(items.size());
        config.items = items.data();
    }
    TextPart(const TextPart&) = delete;

    std::vector<pb_setting> items;
    pb_model_config config;
};

}  // namespace patchbay
