#include "text/normalizer.hpp"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <algorithm>

#include "base/refusals.hpp"
#include "text/characters.hpp"
#include "text/json_fields.hpp"
#include "text/mark_order.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

using nlohmann::json;

Result<Normalizer> Normalizer::from_json(const json& part) {
    Normalizer out;
    if (auto added = out.add(part); !added) return prefixed("normalizer", added.failure());
    return out;
}

Result<> Normalizer::add(const json& part) {
    constexpr size_t kMaxSteps = 64; // each is a pass over the text
    if (part.is_null()) return {};
    const std::string type = type_of(part);
    if (type == "Sequence") {
        const json& parts = member(part, "normalizers");
        if (!parts.is_array()) return invalid("Sequence has no list 'normalizers'");
        for (const json& each : parts) PB_CHECK(add(each));
        return {};
    }
    PB_TRY(Step step, read_step(part, type));
    if (steps_.size() == kMaxSteps) return invalid("more than " + std::to_string(kMaxSteps) + " steps");
    steps_.push_back(std::move(step));
    return {};
}

Result<Normalizer::Step> Normalizer::read_step(const json& part, const std::string& type) {
    if (type == "NFC") return Step(Form::kNfc);
    if (type == "NFD") return Step(Form::kNfd);
    if (type == "NFKC") return Step(Form::kNfkc);
    if (type == "NFKD") return Step(Form::kNfkd);
    if (type == "Lowercase") return Step(Lowercase{});
    if (type == "StripAccents") return Step(StripAccents{});
    if (type == "Strip") {
        PB_TRY(const bool left, flag(part, "strip_left", true));
        PB_TRY(const bool right, flag(part, "strip_right", true));
        return Step(Strip{left, right});
    }
    if (type == "Prepend") {
        PB_TRY(const std::string content, needed_text(part, "prepend"));
        if (content.size() > kMaxTokenBytes) return invalid("Prepend: 'prepend' is too long");
        return Step(Prepend{content});
    }
    if (type == "Replace") {
        PB_TRY(auto pattern, read_pattern(part, type));
        PB_TRY(const std::string content, needed_text(part, "content"));
        return Step(Replace{Splitter(std::move(pattern), Behavior::kIsolated), content});
    }
    if (type == "Precompiled") {
        PB_TRY(const std::string blob, needed_text(part, "precompiled_charsmap"));
        PB_TRY(Charsmap map, Charsmap::parse_base64(blob));
        return Step(std::move(map));
    }
    if (type == "Nmt") return Step(Nmt{});
    if (type == "BertNormalizer") {
        Bert bert;
        PB_TRY(bert.clean, flag(part, "clean_text", true));
        PB_TRY(bert.chinese, flag(part, "handle_chinese_chars", true));
        PB_TRY(bert.lowercase, flag(part, "lowercase", true));
        PB_TRY(bert.strips_accents, flag(part, "strip_accents", bert.lowercase));
        return Step(bert);
    }
    return unsupported("type '" + type +
                       "' is not supported (supported: BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
                       "Precompiled, Prepend, Replace, Sequence, Strip, StripAccents)");
}

// A step on a text: the result, in `out` where it differs. Nothing: the step cannot be done.
struct Normalizer::Apply {
    std::string_view text;
    TextBegin begin;
    size_t max_bytes; // bytes of the result
    std::string& out;
    using Done = std::optional<std::string_view>;

    Done operator()(Form form) const {
        UErrorCode error = U_ZERO_ERROR;
        const icu::Normalizer2* normalizer = form == Form::kNfc    ? icu::Normalizer2::getNFCInstance(error)
                                             : form == Form::kNfd  ? icu::Normalizer2::getNFDInstance(error)
                                             : form == Form::kNfkc ? icu::Normalizer2::getNFKCInstance(error)
                                                                   : icu::Normalizer2::getNFKDInstance(error);
        if (U_FAILURE(error)) return std::nullopt; // ICU without its data
        const auto piece = [](std::string_view of) {
            return icu::StringPiece(of.data(), static_cast<int32_t>(of.size()));
        };
        std::string storage; // of a text whose marks were put in order, which ICU does in quadratic time
        const bool canonical = form == Form::kNfc || form == Form::kNfd;
        const auto ordered = with_ordered_marks(
            text, canonical ? Decomposition::kCanonical : Decomposition::kCompatibility, storage);
        if (!ordered) return std::nullopt;
        if (normalizer->isNormalizedUTF8(piece(*ordered), error) && U_SUCCESS(error)) {
            if (storage.empty()) return text;
            return out = std::move(storage);
        }
        icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
        error = U_ZERO_ERROR;
        normalizer->normalizeUTF8(0, piece(*ordered), sink, nullptr, error);
        if (U_FAILURE(error)) return std::nullopt;
        return out;
    }

    Done operator()(const Bert& bert) const {
        std::string storage;
        const std::string_view spaced = bert.clean || bert.chinese ? bert_cleaned(bert, storage) : text;
        std::string decomposed;
        const auto parted = bert.strips_accents ? Apply{spaced, begin, max_bytes, decomposed}(Form::kNfd) : spaced;
        if (!parted) return std::nullopt;
        for (size_t at = 0; at < parted->size();) {
            const char32_t c = next_character(*parted, at);
            if (bert.strips_accents && is_nonspacing_mark(c)) continue;
            if (bert.lowercase) append_lowercase(out, c);
            else append_character(out, c);
        }
        return out;
    }

    // Without control characters, white space as spaces, and spaces around Chinese characters.
    std::string_view bert_cleaned(const Bert& bert, std::string& cleaned) const {
        for (size_t at = 0; at < text.size();) {
            const char32_t c = next_character(text, at);
            const bool plain_space = c == '\t' || c == '\n' || c == '\r';
            if (bert.clean && (c == 0 || c == 0xFFFD || (!plain_space && is_control(c)))) continue;
            const bool spaced = bert.chinese && is_bert_chinese(c);
            if (spaced) cleaned += ' ';
            if (bert.clean && (plain_space || is_white_space(c))) cleaned += ' ';
            else append_character(cleaned, c);
            if (spaced) cleaned += ' ';
        }
        return cleaned;
    }

    // Source: the rules nmt_nfkc of SentencePiece.
    Done operator()(Nmt) const {
        for (size_t at = 0; at < text.size();) {
            const char32_t c = next_character(text, at);
            const bool dropped = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                                 c == 0x8F || c == 0x9F;
            const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                               (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                               c == 0xFEFF || c == 0xFFFD;
            if (dropped) continue;
            append_character(out, space ? U' ' : c);
        }
        return out;
    }

    Done operator()(Lowercase) const {
        for (size_t at = 0; at < text.size();) append_lowercase(out, next_character(text, at));
        return out;
    }

    Done operator()(StripAccents) const {
        for (size_t at = 0; at < text.size();)
            if (const char32_t c = next_character(text, at); !is_mark(c)) append_character(out, c);
        return out;
    }

    Done operator()(Strip strip) const {
        size_t from = 0, to = text.size();
        for (size_t next = 0; strip.left && from < to && is_white_space(next_character(text, next));) from = next;
        for (size_t before = to; strip.right && to > from && is_white_space(character_before(text, before));)
            to = before;
        return text.substr(from, to - from);
    }

    Done operator()(const Prepend& prepend) const {
        if (text.empty()) return text;
        out = prepend.content;
        return out += text;
    }

    Done operator()(const Replace& replace) const {
        auto scratch = replace.finder.scratch();
        replace.finder.find_all(text, scratch);
        if (scratch.matches.empty()) return text;
        if (scratch.matches.size() * replace.content.size() > max_bytes) return std::nullopt;
        size_t from = 0;
        for (const Span match : scratch.matches) {
            out += text.substr(from, match.begin - from);
            out += replace.content;
            from = match.end;
        }
        return out += text.substr(from);
    }

    Done operator()(const Charsmap& map) const { return map.apply(text, max_bytes, out) ? Done(out) : std::nullopt; }

    Done operator()(const SentencePieceNormalizer& step) const {
        return step.apply(text, begin, max_bytes, out) ? Done(out) : std::nullopt;
    }
};

std::string_view Normalizer::apply(std::string_view text, TextBegin begin, std::string& storage) const {
    const size_t max_bytes = text.size() * 32 + 4096;
    for (const Step& step : steps_) {
        if (text.size() > INT32_MAX / 2) return text; // ICU's lengths are 32-bit, and nothing that long is a prompt
        std::string out;
        const auto done = std::visit(Apply{text, begin, max_bytes, out}, step);
        if (!done || done->size() > max_bytes) continue;
        if (!out.empty() && done->data() == out.data()) {
            storage.swap(out);
            text = std::string_view(storage).substr(0, done->size());
        } else {
            text = out.empty() && done->empty() ? std::string_view() : *done;
        }
    }
    return text;
}

}  // namespace patchbay::text
