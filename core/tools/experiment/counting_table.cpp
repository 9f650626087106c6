#include "experiment/counting_table.hpp"

#include <algorithm>

#include "base/suggest.hpp"
#include "experiment/one_of_table.hpp"
#include "experiment/shares.hpp"

namespace patchbay::experiment {
namespace {

constexpr ClassKind kKinds[] = {ClassKind::kTenant, ClassKind::kPriority, ClassKind::kPromptLength,
                                ClassKind::kLabel};
const std::vector<uint32_t> kBounds = {256, 1024, 4096};

std::optional<ClassKind> kind_named(const std::string& name, const config::Origin& at, Faults& faults) {
    std::vector<std::string> names;
    for (const ClassKind k : kKinds) {
        if (name == word_of(k)) return k;
        names.emplace_back(word_of(k));
    }
    faults.add(at, "unknown '" + config::printable(name) + "' in 'by'" + did_you_mean(name, names) +
                       ", expected some of " + joined(names));
    return std::nullopt;
}

// tenant, or {prompt_length: [256, 1024]}
std::optional<ByClass> read_one(const Node& given, Faults& faults) {
    if (given.kind == NodeKind::kMap && given.entries.size() == 1) {
        const config::Entry& only = given.entries.front();
        const auto kind = kind_named(only.key, only.key_origin, faults);
        if (!kind) return std::nullopt;
        ByClass out{*kind};
        if (*kind != ClassKind::kPromptLength) {
            faults.add(only.key_origin, "only 'prompt_length' has bounds; write 'by: " + only.key + "'");
            return std::nullopt;
        }
        read_alone(Table<ByClass>().values("prompt_length", &ByClass::bounds, Bounds{1, kMaxTokens, "tokens"}, ""),
                   only.value, out, faults);
        if (out.bounds.empty() || !std::ranges::is_sorted(out.bounds, std::less_equal<>()))
            faults.add(only.value.origin, "the bounds of 'prompt_length' do not ascend");
        return out;
    }
    if (given.kind != NodeKind::kScalar) {
        faults.add(given.origin,
                   "an item of 'by' is " + given.describe() + ", expected a word or {prompt_length: […]}");
        return std::nullopt;
    }
    const auto kind = kind_named(given.text, given.origin, faults);
    if (!kind) return std::nullopt;
    return ByClass{*kind, *kind == ClassKind::kPromptLength ? kBounds : std::vector<uint32_t>()};
}

// "10%" of the time of arrivals, or "5s" after the first one.
std::optional<Moment> moment_of(const Node& given, const char* key, Faults& faults) {
    const auto measure = measure_of(given.text);
    const bool is_share = measure && measure->unit == "%", is_time = measure && measure->unit == "s";
    const bool fine = given.kind == NodeKind::kScalar && (is_share || is_time) && measure->value >= 0 &&
                      (!is_share || measure->value <= 100);
    if (fine) return Moment{is_share ? measure->value / 100 : measure->value, is_share};
    faults.add(given.origin, "'" + std::string(key) + "' of 'window' is " + given.describe() +
                                 ", expected a share of the time of arrivals such as 10%, or seconds such as 5s");
    return std::nullopt;
}

}  // namespace

const char* word_of(ClassKind kind) {
    switch (kind) {
        case ClassKind::kTenant: return "tenant";
        case ClassKind::kPriority: return "priority";
        case ClassKind::kPromptLength: return "prompt_length";
        case ClassKind::kLabel: break;
    }
    return "class";
}

std::vector<ByClass> read_by(const Node& given, Faults& faults) {
    std::vector<ByClass> out;
    const std::vector<Node> one{given};
    for (const Node& item : given.kind == NodeKind::kList ? given.items : one) {
        const auto by = read_one(item, faults);
        if (!by) continue;
        if (std::ranges::any_of(out, [&](const ByClass& b) { return b.kind == by->kind; }))
            faults.add(item.origin, "'" + std::string(word_of(by->kind)) + "' is twice in 'by'");
        out.push_back(*by);
    }
    return out;
}

void read_window(const Node& given, ExperimentSpec& spec, Faults& faults) {
    const bool is_word = given.kind == NodeKind::kScalar;
    if (is_word && given.text == "auto") return;
    spec.window_by_rule = false;
    if (is_word && given.text == "whole") return;
    if (given.kind != NodeKind::kMap)
        return faults.add(given.origin, "'window' is " + given.describe() +
                                            ", expected auto, whole, or a section with 'from' and 'until'");
    CountingWindow out;
    struct Nothing {};
    Nothing nothing;
    Table<Nothing>().leave({"from", "until"}).read(given, nothing, faults); // anything else is an unknown key
    for (const auto& [key, moment] : {std::pair{"from", &out.from}, {"until", &out.until}})
        if (const Node* const at = given.find(key)) *moment = moment_of(*at, key, faults).value_or(*moment);
    if (out.from.is_share == out.until.is_share && out.from.value >= out.until.value)
        faults.add(given.origin, "'window' ends before it begins: 'from' is not before 'until'");
    spec.window = out;
}

}  // namespace patchbay::experiment
