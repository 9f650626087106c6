// What `model` can say of the model that is not there.

#include "base/numbers.hpp"
#include "scenario/values.hpp"

namespace patchbay::scenario {
namespace {

constexpr size_t kMaxLayers = 8, kMaxSpelled = 256, kMaxTokenBytes = 64;

const std::vector<std::string>& layer_types() { // as in config.json of a model
    static const std::vector<std::string> all = {"full_attention", "sliding_attention"};
    return all;
}

std::vector<std::string> read_layers(const Node& node, Faults& faults) {
    std::vector<std::string> out;
    if (node.kind != NodeKind::kList || node.items.empty() || node.items.size() > kMaxLayers) {
        wrong(node, "layer_types", "a list of 1 to " + std::to_string(kMaxLayers) + " layers", faults);
        return out;
    }
    const KeyInfo layer{.name = "layer_types", .type = ValueType::kEnum, .choices = layer_types()};
    for (const Node& item : node.items)
        if (const auto type = config::read_word(item, layer, faults)) out.push_back(layer_types()[*type]);
    return out;
}

Vocabulary read_vocabulary(const Node& node, Faults& faults) {
    Vocabulary out;
    if (node.kind != NodeKind::kMap) {
        wrong(node, "vocabulary", "a map of token ids", faults);
        return out;
    }
    if (node.entries.size() > kMaxSpelled)
        faults.add(node.origin, "'vocabulary' has " + std::to_string(node.entries.size()) +
                                    " tokens, expected at most " + std::to_string(kMaxSpelled));
    for (const Entry& entry : node.entries) {
        const TokenId id = parse_number<TokenId>(entry.key).value_or(-1);
        if (id < 0 || static_cast<uint32_t>(id) >= kVocabSize)
            faults.add(entry.key_origin, "'" + config::printable(entry.key) + "' is not a token id, expected 0 to " +
                                             std::to_string(kVocabSize - 1));
        else if (entry.value.kind != NodeKind::kScalar || entry.value.text.empty() ||
                 entry.value.text.size() > kMaxTokenBytes)
            wrong(entry.value, "vocabulary." + entry.key,
                  "a string of 1 to " + std::to_string(kMaxTokenBytes) + " bytes", faults);
        else out[id] = entry.value.text;
    }
    return out;
}

}  // namespace

config::Table<Model> model_table() {
    config::Table<Model> t;
    t.values("eos_token_ids", &Model::eos, {0, kVocabSize - 1, ""}, "tokens that end a request")
        .key("sliding_window", &Model::sliding_window, {0, kMaxTokens, "tokens"},
             "how far back attention sees; 0: to the first token");
    t.custom(other("layer_types",
                   R"({"type": "array", "items": {"enum": ["full_attention", "sliding_attention"]}, "minItems": 1,
                       "maxItems": 8})",
                   "which layers see how far: each kind has KV groups of its own; one layer where it is left out"),
             [](const Node* given, Model& out, Faults& faults) {
                 if (given) out.layer_types = read_layers(*given, faults);
                 return Node{};
             });
    t.custom(other("vocabulary",
                   R"({"type": "object", "propertyNames": {"pattern": "^[0-9]+$"},
                       "additionalProperties": {"type": ["string", "number", "boolean"]}})",
                   "the text of some tokens, by id; all others have none"),
             [](const Node* given, Model& out, Faults& faults) {
                 if (given) out.vocabulary = read_vocabulary(*given, faults);
                 return Node{};
             });
    return t;
}

}  // namespace patchbay::scenario
