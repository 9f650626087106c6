#include "text/charsmap.hpp"

#include <openssl/evp.h>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <memory>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "text/characters.hpp"

namespace patchbay::text {
namespace {

// A unit of the double array.
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }
uint32_t label_of(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ~(1u << 31); }

bool ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Where a cluster surely ends, found without ICU: between two ASCII characters, but not inside CR LF.
size_t sure_end(std::string_view text) {
    for (size_t i = 1; i < text.size(); ++i)
        if (ascii(text[i - 1]) && ascii(text[i]) && !(text[i - 1] == '\r' && text[i] == '\n')) return i;
    return text.size();
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob) {
    const auto number = [&](size_t at) {
        uint32_t out = 0;
        for (size_t i = 0; i < 4; ++i) out |= uint32_t{static_cast<unsigned char>(blob[at + i])} << 8 * i;
        return out;
    };
    if (blob.size() < 4) return invalid("the charsmap of " + std::to_string(blob.size()) + " bytes has no size");
    const size_t trie = number(0);
    if (trie % 4 != 0 || trie == 0 || trie > blob.size() - 4)
        return invalid("the charsmap of " + std::to_string(blob.size()) + " bytes has a trie of " +
                       std::to_string(trie));
    Charsmap out;
    out.units_.resize(trie / 4);
    for (size_t i = 0; i < out.units_.size(); ++i) out.units_[i] = number(4 + 4 * i);
    out.becomes_ = blob.substr(4 + trie);
    if (valid_prefix(out.becomes_) != out.becomes_.size()) return invalid("the charsmap's replacements are not UTF-8");
    return out;
}

Result<Charsmap> Charsmap::parse_base64(std::string_view blob) {
    constexpr size_t kMaxBlobBytes = 16u << 20;
    if (blob.size() % 4 != 0 || blob.size() > kMaxBlobBytes)
        return invalid("the charsmap of " + std::to_string(blob.size()) + " characters is not base64");
    std::string bytes(blob.size() / 4 * 3, '\0');
    const int decoded =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(blob.data()), static_cast<int>(blob.size()));
    if (decoded < 0) return invalid("the charsmap is not base64");
    bytes.resize(static_cast<size_t>(decoded));
    for (size_t i = 0; i < 2 && blob.ends_with('='); ++i) { // counted as bytes
        blob.remove_suffix(1);
        bytes.pop_back();
    }
    return parse(bytes);
}

std::optional<Charsmap::Match> Charsmap::at(std::string_view text, Prefer prefer) const {
    std::optional<Match> best;
    uint32_t node = offset_of(units_[0]);
    for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        node ^= byte;
        if (node >= units_.size() || label_of(units_[node]) != byte) break;
        const bool leaf = has_leaf(units_[node]);
        node ^= offset_of(units_[node]);
        if (!leaf) continue;
        if (node >= units_.size()) break;
        const size_t begin = value_of(units_[node]);
        if (begin >= becomes_.size() || continues_character(becomes_[begin])) continue;
        const size_t end = std::min(becomes_.find('\0', begin), becomes_.size());
        best = {i + 1, std::string_view(becomes_).substr(begin, end - begin)};
        if (prefer == Prefer::kShortest) break;
    }
    // A rule that ends inside a character would leave half of it.
    if (best && best->length < text.size() && continues_character(text[best->length]))
        return std::nullopt;
    return best;
}

void Charsmap::apply_cluster(std::string_view cluster, std::string& out) const {
    constexpr size_t kWhole = 6; // bytes: longer clusters are taken apart
    if (cluster.size() < kWhole)
        if (const auto match = at(cluster, Prefer::kShortest)) {
            out += match->becomes;
            return;
        }
    while (!cluster.empty()) {
        const std::string_view character = cluster.substr(0, character_length(cluster[0]));
        const auto match = at(character, Prefer::kShortest);
        out += match ? match->becomes : character;
        cluster.remove_prefix(character.size());
    }
}

bool Charsmap::apply(std::string_view text, size_t max_bytes, std::string& out) const {
    std::unique_ptr<icu::BreakIterator> clusters; // made when it is needed
    while (!text.empty()) {
        if (out.size() > max_bytes) return false;
        const std::string_view segment = text.substr(0, sure_end(text));
        text.remove_prefix(segment.size());
        if (segment.size() == 1) {
            apply_cluster(segment, out);
            continue;
        }
        UErrorCode error = U_ZERO_ERROR;
        if (!clusters) clusters.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
        if (U_FAILURE(error)) return false; // ICU without its data
        UText view = UTEXT_INITIALIZER;
        utext_openUTF8(&view, segment.data(), static_cast<int64_t>(segment.size()), &error);
        const icu::LocalUTextPointer closes(&view);
        clusters->setText(&view, error);
        if (U_FAILURE(error)) return false;
        for (int32_t begin = clusters->first(), end; (end = clusters->next()) != icu::BreakIterator::DONE;
             begin = end) {
            apply_cluster(segment.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), out);
            if (out.size() > max_bytes) return false;
        }
    }
    return true;
}

}  // namespace patchbay::text
