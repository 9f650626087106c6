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

std::string value_of(const FlatConfig& config, const std::string& key) {
    const auto at = config.find(key);
    return at == config.end() ? "" : at->second;
}

// The checkpoint's name of the weight that is called one of these, after any words; empty: there is none.
std::string stored_as(const Checkpoint& checkpoint, std::initializer_list<std::string_view> ends) {
    for (const std::string& name : checkpoint.names())
        if (std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); })) return name;
    return "";
}

}  // namespace

Result<bool> WeightSource::stores_own_head() const {
    const Checkpoint* const checkpoint = stored_.checkpoint();
    if (!checkpoint) return false;
    const std::string table = stored_as(
        *checkpoint, {"embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight"});
    if (table.empty()) return false;
    if (!stored_as(*checkpoint, {"lm_head.qweight", "lm_head.weight_packed", "embed_out.qweight",
                                 "embed_out.weight_packed"}).empty())
        return true; // a table is never packed
    const std::string head = stored_as(*checkpoint, {"lm_head.weight", "embed_out.weight"});
    if (head.empty()) return false;
    PB_TRY(const TensorView of_head, checkpoint->tensor(head));
    PB_TRY(const TensorView of_table, checkpoint->tensor(table));
    return !same_numbers(of_head, of_table);
}

Result<std::string> settle_head(FlatConfig& config, const WeightSource& source) {
    constexpr std::string_view kText = "text_config."; // of a model that also sees
    const auto after = config.lower_bound(std::string(kText));
    const bool sees = after != config.end() && after->first.starts_with(kText);
    const std::string key = std::string(sees ? kText : "") + kTied;
    const std::string said = value_of(config, config.contains(key) ? key : kTied); // as TextPart reads them
    if (said == "false") return std::string(); // nothing to compare
    if (!said.empty() && said != "true" && said != "null") return std::string(); // the model's to refuse
    PB_TRY(const bool own, source.stores_own_head());
    if (!own) return std::string();
    config[key] = "false";
    if (said != "true") return std::string();
    return std::string("config.json says tie_word_embeddings: true, but the checkpoint stores an lm head that is ") +
           "not the token table: the stored one is used, as in transformers 5";
}

}  // namespace patchbay::weights
