#include "weights/stored_head.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace patchbay::weights {
namespace {

constexpr const char* kTied = "tie_word_embeddings";

bool same_numbers(const TensorView& a, const TensorView& b) {
    return a.encoding == b.encoding && a.shape == b.shape && a.turned == b.turned && a.bytes == b.bytes &&
           std::memcmp(a.data, b.data, a.bytes) == 0;
}

bool says(const FlatConfig& config, const std::string& key, const char* value) {
    const auto at = config.find(key);
    return at != config.end() && at->second == value;
}

}  // namespace

Result<bool> WeightSource::stores_own_head() const {
    const Checkpoint* const checkpoint = stored_.checkpoint();
    if (!checkpoint) return false;
    std::string head, table;
    const auto ends_with_one_of = [](const std::string& name, std::initializer_list<std::string_view> ends) {
        return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
    };
    for (const std::string& name : checkpoint->names()) {
        if (ends_with_one_of(name, {"lm_head.weight", "embed_out.weight"})) head = name;
        if (ends_with_one_of(name, {"embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight"}))
            table = name;
    }
    if (head.empty() || table.empty()) return false;
    PB_TRY(const TensorView of_head, checkpoint->tensor(head));
    PB_TRY(const TensorView of_table, checkpoint->tensor(table));
    return !same_numbers(of_head, of_table);
}

Result<std::string> settle_head(FlatConfig& config, const WeightSource& source) {
    const std::string inner = std::string("text_config.") + kTied; // of a model that also sees
    for (const std::string& key : {std::string(kTied), inner}) { // what is no truth is the model's to refuse
        const auto at = config.find(key);
        if (at != config.end() && at->second != "true" && at->second != "false" && at->second != "null")
            return std::string();
    }
    if (says(config, kTied, "false") && !says(config, inner, "true")) return std::string(); // nothing to compare
    PB_TRY(const bool own, source.stores_own_head());
    if (!own) return std::string();
    const bool contradicts = says(config, kTied, "true") || says(config, inner, "true");
    config[config.contains(inner) ? inner : kTied] = "false";
    if (!contradicts) return std::string();
    return std::string("config.json says tie_word_embeddings: true, but the checkpoint stores an lm head that is ") +
           "not the token table: the stored one is used, as in transformers 5";
}

}  // namespace patchbay::weights
