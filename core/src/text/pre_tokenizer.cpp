#include "text/pre_tokenizer.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "text/byte_alphabet.hpp"
#include "text/characters.hpp"
#include "text/json_fields.hpp"
#include "text/known_patterns.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

// \w with the characters that join letters, which the class of other patterns does not have.
constexpr const char* kWordsAndSigns = R"([\w\x{200C}\x{200D}]+|[^\w\s\x{200C}\x{200D}]+)";

Result<Behavior> read_behavior(const json& part, std::optional<Behavior> default_value) {
    static constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
        {"Isolated", Behavior::kIsolated},
        {"Removed", Behavior::kRemoved},
        {"MergedWithPrevious", Behavior::kMergedWithPrevious},
        {"MergedWithNext", Behavior::kMergedWithNext},
        {"Contiguous", Behavior::kContiguous},
    };
    const json& given = member(part, "behavior");
    if (given.is_null() && default_value) return *default_value;
    for (const auto& [name, behavior] : kBehaviors)
        if (given == name) return behavior;
    return unsupported(type_of(part) + ": behavior " + (given.is_null() ? "(none)" : shown(given)) +
                       " is not supported");
}

// The pre-tokenizers that only cut.
Result<Splitter> read_splitter(const json& part, const std::string& type) {
    if (type == "Split") {
        PB_TRY(const Behavior behavior, read_behavior(part, std::nullopt));
        PB_TRY(auto pattern, read_pattern(part, type));
        PB_TRY(const bool invert, flag(part, "invert", false));
        return Splitter(std::move(pattern), behavior, invert ? Takes::kGaps : Takes::kMatches);
    }
    if (type == "Digits") {
        PB_TRY(const bool individual, flag(part, "individual_digits", false));
        return Splitter(is_number, individual ? Behavior::kIsolated : Behavior::kContiguous);
    }
    if (type == "WhitespaceSplit") return Splitter(is_white_space, Behavior::kRemoved);
    if (type == "Punctuation") {
        PB_TRY(const Behavior behavior, read_behavior(part, Behavior::kIsolated));
        return Splitter(is_punctuation, behavior);
    }
    if (type == "CharDelimiterSplit") {
        PB_TRY(std::string delimiter, needed_text(part, "delimiter"));
        if (delimiter.empty()) return invalid("CharDelimiterSplit: 'delimiter' is empty");
        return Splitter(std::move(delimiter), Behavior::kRemoved);
    }
    if (type == "Whitespace") {
        PB_TRY(Regex regex, Regex::compile(kWordsAndSigns));
        return Splitter(std::move(regex), Behavior::kRemoved, Takes::kGaps);
    }
    return unsupported("type '" + type +
                       "' is not supported (supported: BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
                       "Metaspace, Punctuation, Sequence, Split, Whitespace, WhitespaceSplit)");
}

}  // namespace

Result<Splitter::What> read_pattern(const json& part, const std::string& type) {
    const json& pattern = member(part, "pattern");
    if (!pattern.is_object()) return invalid(type + " has no 'pattern'");
    if (const auto& text = member(pattern, "String"); text.is_string()) {
        if (text.get_ref<const std::string&>().empty())
            return unsupported(type + ": an empty 'String' is not supported");
        if (text.get_ref<const std::string&>().size() > kMaxTokenBytes)
            return unsupported(type + ": a 'String' of more than " + std::to_string(kMaxTokenBytes) +
                               " bytes is not supported");
        return Splitter::What(text.get<std::string>());
    }
    if (const auto& text = member(pattern, "Regex"); text.is_string()) {
        PB_TRY(Regex regex, Regex::compile(text.get<std::string>()));
        return Splitter::What(std::move(regex));
    }
    return invalid(type + ": 'pattern' has neither 'Regex' nor 'String'");
}

Result<PrefixScheme> read_prefix_scheme(const json& part) {
    PB_TRY(const bool prefix, flag(part, "add_prefix_space", true)); // the older way to say it
    const json& scheme = member(part, "prepend_scheme");
    if (scheme.is_null()) return prefix ? PrefixScheme::kAlways : PrefixScheme::kNever;
    if (scheme == "always") return PrefixScheme::kAlways;
    if (scheme == "first") return PrefixScheme::kFirst;
    if (scheme == "never") return PrefixScheme::kNever;
    return unsupported("prepend_scheme " + shown(scheme) + " is not supported (supported: always, first, never)");
}

Result<std::string> read_replacement(const json& part) {
    const std::string out = text_or(member(part, "replacement"), "\u2581");
    if (out.empty() || character_length(out[0]) != out.size())
        return invalid("replacement " + shown(out) + " is not one character");
    return out;
}

Result<PreTokenizer> PreTokenizer::from_json(const json& part) {
    PreTokenizer out;
    if (part.is_null()) return out;
    if (auto added = out.add(part); !added) return prefixed("pre_tokenizer", added.failure());
    return out;
}

Result<> PreTokenizer::add(const json& part) {
    constexpr size_t kMaxSteps = 32; // each is a pass over the text
    if (steps_.size() > kMaxSteps) return invalid("more than " + std::to_string(kMaxSteps) + " steps");
    const std::string type = type_of(part);
    if (type == "Sequence") {
        const json& parts = member(part, "pretokenizers");
        if (!parts.is_array()) return invalid("Sequence has no list 'pretokenizers'");
        for (const json& each : parts) PB_CHECK(add(each));
        return {};
    }
    if (byte_level_ && (type == "ByteLevel" || type == "Metaspace"))
        return unsupported(type + " after ByteLevel is not supported");
    if (type == "ByteLevel") return add_byte_level(part);
    if (type == "BertPreTokenizer") { // white space parts words, and each sign is a word
        PB_CHECK(add({{"type", "WhitespaceSplit"}}));
        return add({{"type", "Punctuation"}, {"behavior", "Isolated"}});
    }
    if (type == "Metaspace") return add_metaspace(part);
    PB_TRY(Splitter splitter, read_splitter(part, type));
    if (byte_level_)
        steps_.push_back(AfterByteLevel{std::move(splitter)});
    else
        steps_.push_back(std::move(splitter));
    return {};
}

Result<> PreTokenizer::add_byte_level(const json& part) {
    byte_level_ = true;
    PB_TRY(const bool prefix, flag(part, "add_prefix_space", true));
    PB_TRY(const bool use_regex, flag(part, "use_regex", true));
    if (prefix) steps_.push_back(Prefix{});
    if (use_regex) {
        PB_TRY(Regex regex, Regex::compile(kGpt2Pattern));
        steps_.push_back(Splitter(std::move(regex), Behavior::kIsolated));
    }
    return {};
}

Result<> PreTokenizer::add_metaspace(const json& part) {
    PB_TRY(const std::string space, read_replacement(part));
    PB_TRY(const PrefixScheme scheme, read_prefix_scheme(part));
    PB_TRY(const bool split, flag(part, "split", true));
    steps_.push_back(Metaspace{space, scheme});
    if (split) steps_.push_back(Splitter(space, Behavior::kMergedWithNext));
    return {};
}

void PreTokenizer::apply(const Splitter& splitter, std::vector<Piece>& pieces) {
    auto scratch = splitter.scratch();
    std::vector<Span> spans;
    std::vector<Piece> out;
    for (const Piece& piece : pieces) {
        spans.clear();
        splitter.split(piece.text, scratch, spans);
        for (const Span s : spans)
            out.push_back({piece.text.substr(s.begin, s.end - s.begin), s.begin == 0 ? piece.begin : TextBegin::kNo});
    }
    pieces.swap(out);
}

// A character of the spelling is a byte of the piece.
void PreTokenizer::apply(const AfterByteLevel& step, std::vector<Piece>& pieces) {
    auto scratch = step.splitter.scratch();
    std::vector<Span> spans;
    std::vector<size_t> begins; // of each byte in the spelling
    std::string spelled;
    std::vector<Piece> out;
    for (const Piece& piece : pieces) {
        spans.clear();
        begins.clear();
        spelled.clear();
        for (const char c : piece.text) {
            begins.push_back(spelled.size());
            spelled += spell_byte(static_cast<unsigned char>(c));
        }
        step.splitter.split(spelled, scratch, spans);
        const auto byte_at = [&](size_t at) {
            return static_cast<size_t>(std::lower_bound(begins.begin(), begins.end(), at) - begins.begin());
        };
        for (const Span s : spans) {
            const size_t begin = byte_at(s.begin), size = byte_at(s.end) - begin;
            out.push_back({piece.text.substr(begin, size), begin == 0 ? piece.begin : TextBegin::kNo});
        }
    }
    pieces.swap(out);
}

void PreTokenizer::apply(const Prefix&, std::vector<Piece>& pieces, std::deque<std::string>& changed) {
    for (Piece& piece : pieces)
        if (!piece.text.starts_with(' ')) piece.text = changed.emplace_back(" " + std::string(piece.text));
}

void PreTokenizer::apply(const Metaspace& step, std::vector<Piece>& pieces, std::deque<std::string>& changed) {
    for (Piece& piece : pieces) {
        const bool wants = step.scheme == PrefixScheme::kAlways ||
                           (step.scheme == PrefixScheme::kFirst && piece.begin == TextBegin::kYes);
        std::string out;
        out.reserve(piece.text.size() + piece.text.size() / 2);
        if (wants && !piece.text.starts_with(' ') && !piece.text.starts_with(step.space)) out = step.space;
        for (const char c : piece.text) {
            if (c == ' ')
                out += step.space;
            else
                out += c;
        }
        piece.text = changed.emplace_back(std::move(out));
    }
}

void PreTokenizer::split(std::string_view text, TextBegin begin, Words& out) const {
    if (text.empty()) return;
    std::vector<Piece> pieces{{text, begin}};
    for (const Step& step : steps_) {
        if (const auto* splitter = std::get_if<Splitter>(&step))
            apply(*splitter, pieces);
        else if (const auto* after = std::get_if<AfterByteLevel>(&step))
            apply(*after, pieces);
        else if (const auto* metaspace = std::get_if<Metaspace>(&step))
            apply(*metaspace, pieces, out.changed);
        else
            apply(std::get<Prefix>(step), pieces, out.changed);
    }
    for (const Piece& piece : pieces) out.words.push_back(piece.text);
}

}  // namespace patchbay::text
