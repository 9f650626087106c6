#include "text/mark_order.hpp"

#include <unicode/normalizer2.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/characters.hpp"

namespace patchbay::text {
namespace {

constexpr size_t kFewMarks = 32; // which ICU may put in order itself

struct Mark {
    char32_t character;
    uint8_t combining_class;
};

// Appends the marks that begin at `at`, decomposed as ICU would before it puts them in order. Returns where they end.
size_t read_marks(const icu::Normalizer2& decomposing, std::string_view text, size_t at, std::vector<Mark>& marks) {
    const auto append = [&](UChar32 c) {
        marks.push_back({static_cast<char32_t>(c), decomposing.getCombiningClass(c)});
    };
    for (size_t next = at; at < text.size(); at = next) {
        const auto c = static_cast<UChar32>(next_character(text, next));
        if (decomposing.hasBoundaryBefore(c)) break; // its decomposition begins with no mark
        icu::UnicodeString parts;
        if (!decomposing.getDecomposition(c, parts)) append(c);
        else for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) append(parts.char32At(i));
    }
    return at;
}

}  // namespace

std::optional<std::string_view> with_ordered_marks(std::string_view text, Decomposition decomposition,
                                                   std::string& storage) {
    constexpr unsigned char kFirstLead = 0xCC; // of U+0300: no character before it is a mark
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* const decomposing = decomposition == Decomposition::kCanonical
                                                    ? icu::Normalizer2::getNFDInstance(error)
                                                    : icu::Normalizer2::getNFKDInstance(error);
    if (U_FAILURE(error)) return std::nullopt;
    storage.clear();
    std::vector<Mark> marks;
    size_t copied = 0;
    for (size_t at = 0; at < text.size();) {
        if (static_cast<unsigned char>(text[at]) < kFirstLead) { // or the rest of a character
            ++at;
            continue;
        }
        marks.clear();
        const size_t end = read_marks(*decomposing, text, at, marks);
        if (marks.size() > kFewMarks) {
            std::ranges::stable_sort(marks, {}, &Mark::combining_class);
            storage += text.substr(copied, at - copied);
            for (const Mark mark : marks) append_character(storage, mark.character);
            copied = end;
        }
        if (end > at) at = end;
        else next_character(text, at);
    }
    if (copied == 0) return text;
    return storage += text.substr(copied);
}

}  // namespace patchbay::text
