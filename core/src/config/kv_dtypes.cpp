#include "config/load_parts.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/suggest.hpp"

namespace patchbay::config {
namespace {

constexpr uint32_t kMaxLayers = 4096;

std::optional<uint32_t> number_in(std::string_view text) { // 0 … kMaxLayers
    const auto out = parse_number<uint32_t>(text);
    return out && *out <= kMaxLayers ? out : std::nullopt;
}

std::optional<KvDTypeOfLayers> layers_in(const std::string& key) {
    constexpr std::string_view kLast = "last ";
    const std::string_view text = key;
    if (text.starts_with(kLast)) {
        const auto count = number_in(text.substr(kLast.size()));
        if (!count || *count == 0) return std::nullopt;
        return KvDTypeOfLayers{key, std::nullopt, *count, KvDType::kAuto};
    }
    const size_t dash = text.find('-');
    const auto first = number_in(text.substr(0, dash));
    const auto last = dash == text.npos ? first : number_in(text.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    return KvDTypeOfLayers{key, *first, *last - *first + 1, KvDType::kAuto};
}

bool overlap(const KvDTypeOfLayers& a, const KvDTypeOfLayers& b) { // as far as it is known without a model
    if (a.first.has_value() != b.first.has_value()) return false;
    return !a.first || (*a.first < *b.first + b.count && *b.first < *a.first + a.count);
}

std::string word_of(KvDType dtype) {
    const auto words = kv_dtype_words();
    return std::ranges::find(words, dtype, &Word<KvDType>::value)->text;
}

Node shown(const std::vector<KvDTypeOfLayers>& all) {
    Node out = Node::map();
    for (const KvDTypeOfLayers& layers : all) out.set(layers.layers, Node::string(word_of(layers.dtype)));
    return out;
}

Node read_layers(const Node* given, EngineSettings& out, Faults& faults) {
    if (!given || !is_section(*given, "'kv_cache_dtype_layers'", faults)) return shown(out.kv_cache_dtype_layers);
    out.kv_cache_dtype_layers.clear();
    for (const Entry& entry : given->entries) {
        auto layers = layers_in(entry.key);
        if (!layers) {
            faults.add(entry.key_origin, "'kv_cache_dtype_layers': '" + printable(entry.key) +
                                             "' names no layers, expected 7, 0-3 or last 2 (up to " +
                                             std::to_string(kMaxLayers) + ")");
            continue;
        }
        const auto words = kv_dtype_words();
        const auto word = std::find_if(words.begin(), words.end(), [&](const Word<KvDType>& w) {
            return entry.value.kind == NodeKind::kScalar && w.text == entry.value.text;
        });
        if (word == words.end()) {
            std::vector<std::string> known;
            for (const Word<KvDType>& w : words) known.push_back(w.text);
            faults.add(entry.value.origin, "'kv_cache_dtype_layers': layers " + entry.key + " have " +
                                               entry.value.describe() + ", expected a type such as bfloat16 or int8" +
                                               did_you_mean(entry.value.text, known));
            continue;
        }
        layers->dtype = word->value;
        for (const KvDTypeOfLayers& other : out.kv_cache_dtype_layers)
            if (overlap(*layers, other))
                faults.add(entry.key_origin, "'kv_cache_dtype_layers': layers " + entry.key + " and " + other.layers +
                                                 " overlap");
        out.kv_cache_dtype_layers.push_back(*std::move(layers));
    }
    return given->kind == NodeKind::kMap ? *given : Node::map(given->origin);
}

}  // namespace

std::vector<Word<KvDType>> kv_dtype_words() {
    return {{"auto", KvDType::kAuto},
            {"float32", KvDType::kF32},
            {"bfloat16", KvDType::kBf16},
            {"fp8", KvDType::kFp8},
            {"int8", KvDType::kInt8},
            {"f32", KvDType::kF32},
            {"bf16", KvDType::kBf16},
            {"fp8_e4m3", KvDType::kFp8},
            {"fp8_per_token_head", KvDType::kFp8},
            {"int8_per_token_head", KvDType::kInt8}};
}

void add_kv_dtype_layers(Table<EngineSettings>& table) {
    table.custom({.name = "kv_cache_dtype_layers",
                  .type = ValueType::kOther,
                  .description = "types of some layers' keys and values, instead of kv_cache_dtype: a map from layers "
                             "(7, 0-3, last 2) to a type",
                  .json_schema = R"({"type": "object", "additionalProperties": {"type": "string"}})"},
                 read_layers);
}

}  // namespace patchbay::config
