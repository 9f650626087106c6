#include "text/decoder.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "text/byte_alphabet.hpp"
#include "text/characters.hpp"
#include "text/json_fields.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;


std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    for (size_t at = text.find(from); at != text.npos; at = text.find(from)) {
        out += text.substr(0, at);
        out += to;
        text.remove_prefix(at + from.size());
    }
    return out += text;
}

// How many bytes of `run`'s copies, at most `max_count` copies, are at the front.
size_t leading(std::string_view text, std::string_view run, uint32_t max_count) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < max_count && text.substr(bytes).starts_with(run); ++i) bytes += run.size();
    return bytes;
}
size_t trailing(std::string_view text, std::string_view run, uint32_t max_count) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < max_count && text.substr(0, text.size() - bytes).ends_with(run); ++i) bytes += run.size();
    return bytes;
}

// What Hugging Face's WordPiece decoder does to each token, which joins most signs to the word before them.
std::string without_spaces_before_signs(std::string text) {
    constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
        {" .", "."},       {" ?", "?"},   {" !", "!"},           {" ,", ","},   {" ' ", "'"},  {" n't", "n't"},
        {" 'm", "'m"},     {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kPairs) text = replaced(text, from, to);
    return text;
}

}  // namespace

Result<Decoder> Decoder::from_json(const json& part, bool byte_level) {
    Decoder out;
    if (part.is_null() && byte_level) return from_json({{"type", "ByteLevel"}}, byte_level);
    if (part.is_null()) {
        out.token_steps_.emplace_back(Spaced{});
        return out;
    }
    if (auto added = out.add(part); !added) return prefixed("decoder", added.failure());
    return out;
}

Decoder Decoder::sentencepiece(LeadingSpaces leading, BytePieces bytes) {
    Decoder out;
    if (bytes == BytePieces::kAll) out.token_steps_.emplace_back(ByteFallback{});
    out.token_steps_.emplace_back(SentencePieceSpace{leading});
    return out;
}

Result<> Decoder::add(const json& part) {
    constexpr size_t kMaxSteps = 64;
    const std::string type = type_of(part);
    if (type == "Sequence") {
        const json& parts = member(part, "decoders");
        if (!parts.is_array()) return invalid("Sequence has no list 'decoders'");
        for (const json& each : parts) PB_CHECK(add(each));
        return {};
    }
    if (token_steps_.size() + text_steps_.size() == kMaxSteps)
        return invalid("more than " + std::to_string(kMaxSteps) + " steps");
    if (type == "Fuse") {
        joined_ = true;
        return {};
    }
    if (type == "Replace") return add_replace(part);
    if (type == "Strip") return add_strip(part);
    if (type == "BPEDecoder" || type == "WordPiece") return add_words(part, type);
    if (type != "ByteLevel" && type != "ByteFallback" && type != "Metaspace")
        return unsupported("type '" + type +
                           "' is not supported (supported: BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, "
                           "Replace, Sequence, Strip, WordPiece)");
    if (type == "ByteLevel" && byte_level()) return {}; // twice is once
    if (joined_) return unsupported(type + " after Fuse or ByteLevel is not supported");
    if (type == "ByteLevel") {
        token_steps_.emplace_back(ByteLevel{});
        joined_ = true;
    } else if (type == "ByteFallback") {
        token_steps_.emplace_back(ByteFallback{});
    } else {
        PB_TRY(std::string space, read_replacement(part));
        PB_TRY(const PrefixScheme scheme, read_prefix_scheme(part));
        token_steps_.emplace_back(Metaspace{std::move(space), scheme});
    }
    return {};
}

// The decoders that put spaces between words: where a word ends, or where none goes on.
Result<> Decoder::add_words(const json& part, const std::string& type) {
    constexpr size_t kMaxMarkBytes = 64; // bytes
    const bool wordpiece = type == "WordPiece";
    const std::string mark = text_or(member(part, wordpiece ? "prefix" : "suffix"), wordpiece ? "##" : "</w>");
    if (mark.empty() || mark.size() > kMaxMarkBytes)
        return invalid(type + ": the mark '" + mark + "' is empty or too long");
    if (!token_steps_.empty() || joined_) return unsupported(type + " after another step is not supported");
    if (wordpiece) {
        PB_TRY(const bool cleanup, flag(part, "cleanup", true));
        token_steps_.emplace_back(WordPieces{mark, cleanup});
    } else {
        token_steps_.emplace_back(WordEnds{mark});
    }
    return {};
}

Result<> Decoder::add_replace(const json& part) {
    constexpr size_t kMaxBytes = 64; // bytes: both are held back and compared with each token
    PB_TRY(auto pattern, read_pattern(part, "Replace"));
    PB_TRY(const std::string content, needed_text(part, "content"));
    auto* text = std::get_if<std::string>(&pattern);
    if (!text)
        return unsupported("Replace with a 'Regex' is not supported in a decoder"); // it would run on each token
    if (content.size() > kMaxBytes || text->size() > kMaxBytes)
        return invalid("Replace: 'pattern' or 'content' is longer than " + std::to_string(kMaxBytes) + " bytes");
    add_step(Replace{std::move(*text), content});
    return {};
}

Result<> Decoder::add_strip(const json& part) {
    PB_TRY(const std::string character, needed_text(part, "content"));
    PB_TRY(const uint32_t start, count(part, "start"));
    PB_TRY(const uint32_t stop, count(part, "stop"));
    if (character.empty() || character_length(character[0]) != character.size())
        return invalid("Strip: 'content' " + shown(character) + " is not one character");
    add_step(Strip{character, start, stop});
    return {};
}

bool Decoder::byte_level() const {
    return !token_steps_.empty() && std::holds_alternative<ByteLevel>(token_steps_.front());
}

struct Decoder::Apply { // a step on a token
    const std::string& token;
    Place place;

    std::string operator()(ByteLevel) const { return spelled_bytes(token).value_or(token); }

    std::string operator()(ByteFallback) const {
        if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return token;
        const uint32_t high = hex_digit(static_cast<unsigned char>(token[3]));
        const uint32_t low = hex_digit(static_cast<unsigned char>(token[4]));
        return high > 15 || low > 15 ? token : std::string(1, static_cast<char>(high << 4 | low));
    }

    std::string operator()(Spaced) const { return place == Place::kFirst ? token : " " + token; }

    std::string operator()(const WordPieces& step) const {
        const bool goes_on = token.starts_with(step.prefix);
        std::string out = place == Place::kFirst ? token : goes_on ? token.substr(step.prefix.size()) : " " + token;
        return step.cleanup ? without_spaces_before_signs(std::move(out)) : out;
    }

    std::string operator()(const WordEnds& step) const {
        return replaced(token, step.suffix, place == Place::kLast ? "" : " ");
    }

    std::string operator()(const Metaspace& step) const {
        const bool drops = place == Place::kFirst && step.scheme != PrefixScheme::kNever;
        return replaced(token, step.space, drops ? "" : " ");
    }

    std::string operator()(SentencePieceSpace step) const {
        const bool drops = place == Place::kFirst && step.leading != LeadingSpaces::kKept && token.starts_with(kSpace);
        return replaced(std::string_view(token).substr(drops ? kSpace.size() : 0), kSpace, " ");
    }

    std::string operator()(const Replace& step) const { return replaced(token, step.from, step.to); }

    std::string operator()(const Strip& step) const {
        const size_t front = leading(token, step.character, step.start);
        const std::string_view left = std::string_view(token).substr(front);
        return std::string(left.substr(0, left.size() - trailing(left, step.character, step.stop)));
    }
};

std::string Decoder::token_bytes(std::string_view spelled, Place place) const {
    std::string out(spelled);
    for (const TokenStep& step : token_steps_) {
        if (valid_prefix(out) != out.size() || out.size() > kMaxBytes)
            break; // it is a byte by now, or will be refused
        out = std::visit(Apply{out, place}, step);
    }
    return out;
}

// Whether a token that came first, of these bytes, was the first that counts as such.
bool Decoder::begins_text(std::string_view bytes) const {
    const auto* spaces = token_steps_.empty() ? nullptr : std::get_if<SentencePieceSpace>(&token_steps_.back());
    return !spaces || spaces->leading != LeadingSpaces::kAllDropped || !bytes.empty();
}

struct Decoder::Push { // a step on text that comes in pieces: what it passes on
    DecodeState::Held& held;
    std::string text;

    std::string operator()(const Strip& step) {
        std::string_view left = text;
        while (!held.begun && !left.empty()) {
            held.begun = held.taken == step.start || !left.starts_with(step.character);
            if (held.begun) break;
            left.remove_prefix(step.character.size());
            ++held.taken;
        }
        held.text += left;
        const size_t kept = trailing(held.text, step.character, step.stop);
        std::string out = held.text.substr(0, held.text.size() - kept);
        held.text.erase(0, out.size());
        return out;
    }

    std::string operator()(const Replace& step) {
        held.text += text;
        std::string out;
        std::string_view left = held.text;
        for (size_t at = left.find(step.from); at != left.npos; at = left.find(step.from)) {
            out += left.substr(0, at);
            out += step.to;
            left.remove_prefix(at + step.from.size());
        }
        size_t begun = std::min(left.size(), step.from.size() - 1); // a match may have begun at the end
        while (!std::string_view(step.from).starts_with(left.substr(left.size() - begun))) --begun;
        out += left.substr(0, left.size() - begun);
        held.text.erase(0, held.text.size() - begun);
        return out;
    }
};

struct Decoder::Finish { // what it held that stays
    DecodeState::Held& held;
    std::string operator()(const Strip&) const { return {}; }
    std::string operator()(const Replace&) const { return held.text; }
};

void Decoder::through_steps(DecodeState& state, std::string text, std::string& out) const {
    state.steps.resize(text_steps_.size());
    for (size_t i = 0; i < text_steps_.size(); ++i)
        text = std::visit(Push{state.steps[i], std::move(text)}, text_steps_[i]);
    out += text;
}

// The space after a word is put off until another token comes.
void Decoder::add_ending(DecodeState& state, std::string_view spelled, std::string_view later) const {
    const std::string last = token_bytes(spelled, Place::kLast);
    const auto differ = std::mismatch(later.begin(), later.end(), last.begin(), last.end()).first;
    const auto same = static_cast<size_t>(differ - later.begin());
    state.bytes += state.if_more;
    state.bytes += later.substr(0, same);
    state.if_more = later.substr(same);
    state.if_last = last.substr(same);
}

void Decoder::next(DecodeState& state, std::string_view spelled, std::string_view later, std::string& out) const {
    if (!token_steps_.empty() && std::holds_alternative<WordEnds>(token_steps_.front())) {
        add_ending(state, spelled, later);
    } else if (state.begun) {
        state.bytes += later;
    } else {
        const std::string first = token_bytes(spelled, Place::kFirst);
        state.begun = begins_text(first);
        state.bytes += first;
    }
    if (text_steps_.empty()) return drain_utf8(state.bytes, out, Rest::kKeep);
    std::string text;
    drain_utf8(state.bytes, text, Rest::kKeep);
    through_steps(state, std::move(text), out);
}

void Decoder::rest(DecodeState& state, std::string& out) const {
    std::string text;
    state.bytes += state.if_last;
    state.if_last.clear();
    drain_utf8(state.bytes, text, Rest::kReplace);
    state.steps.resize(text_steps_.size());
    for (size_t i = 0; i < text_steps_.size(); ++i) {
        text = std::visit(Push{state.steps[i], std::move(text)}, text_steps_[i]);
        text += std::visit(Finish{state.steps[i]}, text_steps_[i]);
    }
    out += text;
}

}  // namespace patchbay::text
