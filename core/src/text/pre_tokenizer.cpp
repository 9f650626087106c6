#include "text/pre_tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace patchbay::text {
namespace {

using nlohmann::json;

// Source: the GPT-2 release, Radford et al. 2019.
constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Result<bool> flag(const json& of, const char* key, bool fallback) {
    const auto at = of.find(key);
    if (at == of.end() || at->is_null()) return fallback;
    if (!at->is_boolean()) return fail(std::string("'") + key + "' is neither true nor false");
    return at->get<bool>();
}

std::string type_of(const json& part) {
    const auto at = part.is_object() ? part.find("type") : part.end();
    return at != part.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_json(const json& part) {
    PreTokenizer out;
    if (auto added = out.add(part); !added) return fail("pre_tokenizer: " + added.error());
    if (!out.byte_level_)
        return fail("pre_tokenizer: there is no ByteLevel part; only byte-level tokenizers are supported");
    return out;
}

Result<> PreTokenizer::add(const json& part) {
    const std::string type = type_of(part);
    if (type == "Sequence") {
        const auto parts = part.find("pretokenizers");
        if (parts == part.end() || !parts->is_array()) return fail("Sequence has no list 'pretokenizers'");
        for (const json& each : *parts) PB_CHECK(add(each));
        return {};
    }
    if (type != "Split" && type != "Digits" && type != "ByteLevel")
        return fail("type '" + type + "' is not supported (supported: ByteLevel, Split, Digits, Sequence)");
    if (byte_level_) return fail(type + " after ByteLevel is not supported");
    if (type == "ByteLevel") return add_byte_level(part);
    if (type == "Split") return add_split(part);
    PB_TRY(const bool individual, flag(part, "individual_digits", false));
    PB_TRY(Regex digits, Regex::compile("\\p{N}", Regex::Syntax::kPattern));
    splits_.push_back({std::move(digits), individual ? Behavior::kIsolated : Behavior::kContiguous});
    return {};
}

Result<> PreTokenizer::add_byte_level(const json& part) {
    byte_level_ = true;
    PB_TRY(prefix_space_, flag(part, "add_prefix_space", true));
    PB_TRY(const bool use_regex, flag(part, "use_regex", true));
    if (use_regex) {
        PB_TRY(Regex regex, Regex::compile(kGpt2Pattern, Regex::Syntax::kPattern));
        byte_level_split_ = Split{std::move(regex), Behavior::kIsolated};
    }
    return {};
}

Result<> PreTokenizer::add_split(const json& part) {
    static constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
        {"Isolated", Behavior::kIsolated},
        {"Removed", Behavior::kRemoved},
        {"MergedWithPrevious", Behavior::kMergedWithPrevious},
        {"MergedWithNext", Behavior::kMergedWithNext},
        {"Contiguous", Behavior::kContiguous},
    };
    const auto pattern = part.find("pattern"), behavior = part.find("behavior");
    const auto* named = std::end(kBehaviors);
    if (behavior != part.end() && behavior->is_string())
        named = std::find_if(std::begin(kBehaviors), std::end(kBehaviors),
                             [&](const auto& b) { return b.first == behavior->get_ref<const std::string&>(); });
    if (named == std::end(kBehaviors))
        return fail("Split: behavior " + (behavior == part.end() ? "(none)" : behavior->dump().substr(0, 80)) +
                    " is not supported");
    if (pattern == part.end() || !pattern->is_object()) return fail("Split has no 'pattern'");
    PB_TRY(const bool invert, flag(part, "invert", false));
    for (const auto& [key, syntax] :
         {std::pair{"Regex", Regex::Syntax::kPattern}, {"String", Regex::Syntax::kLiteral}}) {
        const auto text = pattern->find(key);
        if (text == pattern->end() || !text->is_string()) continue;
        PB_TRY(Regex regex, Regex::compile(text->get<std::string>(), syntax));
        splits_.push_back({std::move(regex), named->second, invert ? Takes::kGaps : Takes::kMatches});
        return {};
    }
    return fail("Split: 'pattern' has neither 'Regex' nor 'String'");
}

void PreTokenizer::apply(const Split& split, std::string_view text, const Regex::Scratch& scratch,
                         std::vector<Span>& out) {
    std::vector<Span> matches;
    split.regex.find_all(text, scratch, matches);
    if (split.behavior == Behavior::kIsolated) { // either way all of it stays; the common case
        size_t from = 0;
        for (const Span match : matches) {
            if (match.begin > from) out.push_back({from, match.begin});
            if (match.end > match.begin) out.push_back(match);
            from = match.end;
        }
        if (from < text.size()) out.push_back({from, text.size()});
        return;
    }
    std::vector<Part> parts;
    size_t from = 0;
    const bool matched = split.takes == Takes::kMatches;
    for (const Span match : matches) {
        if (match.begin > from) parts.push_back({{from, match.begin}, !matched});
        parts.push_back({match, matched});
        from = match.end;
    }
    if (from < text.size()) parts.push_back({{from, text.size()}, !matched});
    const size_t first = out.size();
    for (size_t i = 0; i < parts.size(); ++i) {
        const Part part = parts[i];
        const bool after_match = i > 0 && parts[i - 1].match;
        bool joins = false; // the span before
        switch (split.behavior) {
            case Behavior::kRemoved:
                if (part.match) continue;
                break;
            case Behavior::kMergedWithPrevious:
                joins = i > 0 && part.match && !after_match;
                break;
            case Behavior::kMergedWithNext:
                joins = after_match && !part.match;
                break;
            case Behavior::kContiguous:
                joins = i > 0 && part.match == after_match;
                break;
            case Behavior::kIsolated:
                break;
        }
        if (joins && out.size() > first)
            out.back().end = part.span.end;
        else
            out.push_back(part.span);
    }
    out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                             [](Span s) { return s.begin == s.end; }),
              out.end());
}

void PreTokenizer::split(std::string_view text, Words& out) const {
    if (text.empty()) return;
    std::vector<Span> spans{{0, text.size()}}, next;
    const auto run = [&](const Split& split, std::string_view whole, const Regex::Scratch& scratch, Span span) {
        const size_t first = next.size();
        apply(split, whole.substr(span.begin, span.end - span.begin), scratch, next);
        for (size_t i = first; i < next.size(); ++i) next[i] = {next[i].begin + span.begin, next[i].end + span.begin};
    };
    for (const Split& split : splits_) {
        const auto scratch = split.regex.scratch();
        next.clear();
        for (const Span span : spans) run(split, text, scratch, span);
        spans.swap(next);
    }
    const auto scratch = byte_level_split_ ? byte_level_split_->regex.scratch() : Regex::Scratch{};
    for (const Span span : spans) {
        std::string_view word = text.substr(span.begin, span.end - span.begin);
        if (prefix_space_ && !word.starts_with(' ')) word = out.prefixed.emplace_back(" " + std::string(word));
        if (!byte_level_split_) {
            out.words.push_back(word);
            continue;
        }
        next.clear();
        run(*byte_level_split_, word, scratch, {0, word.size()});
        for (const Span s : next) out.words.push_back(word.substr(s.begin, s.end - s.begin));
    }
}

}  // namespace patchbay::text
