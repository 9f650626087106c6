#include "grammar/unicode_classes.hpp"

#include <unicode/uniset.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/refusals.hpp"

namespace patchbay::grammar {
namespace {

Result<CodePoints> made_class(std::string_view name) {
    const bool plain = !name.empty() && name.size() <= 60 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '=' ||
               c == ' ' || c == '-';
    });
    UErrorCode error = U_ZERO_ERROR;
    const icu::UnicodeSet set(icu::UnicodeString::fromUTF8("\\p{" + std::string(plain ? name : "") + "}"), error);
    if (!plain || U_FAILURE(error)) return invalid("no property of Unicode: '" + std::string(name.substr(0, 60)) + "'");
    std::vector<CodePoints::Range> ranges;
    for (int32_t i = 0; i < set.getRangeCount(); ++i)
        ranges.push_back({static_cast<uint32_t>(set.getRangeStart(i)), static_cast<uint32_t>(set.getRangeEnd(i))});
    return CodePoints::of(std::move(ranges)).common(CodePoints::all());
}

std::string loose(std::string_view name) { // names that ICU reads alike
    std::string out;
    for (const char c : name)
        if (c != ' ' && c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    return out;
}

struct Cases {
    CodePoints all;                                // that have another case
    std::map<uint32_t, std::vector<uint32_t>> same; // by one of them
};

Cases made_cases() {
    constexpr uint32_t kTurkicI[] = {'I', 'i', 0x130, 0x131}; // which Unicode folds in Turkic languages only
    Cases out;
    UErrorCode error = U_ZERO_ERROR;
    const icu::UnicodeSet cased(u"[:Changes_When_Casemapped:]", error);
    std::vector<CodePoints::Range> all;
    for (int32_t i = 0; U_SUCCESS(error) && i < cased.size(); ++i) {
        const UChar32 c = cased.charAt(i);
        icu::UnicodeSet same(c, c);
        same.closeOver(USET_CASE_INSENSITIVE);
        std::vector<uint32_t>& known = out.same[static_cast<uint32_t>(c)];
        for (int32_t r = 0; r < same.getRangeCount(); ++r)
            for (UChar32 each = same.getRangeStart(r); each <= same.getRangeEnd(r); ++each)
                known.push_back(static_cast<uint32_t>(each));
        all.push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(c)});
    }
    for (const uint32_t c : kTurkicI) out.same[c].assign(std::begin(kTurkicI), std::end(kTurkicI));
    out.all = CodePoints::of(std::move(all));
    return out;
}

}  // namespace

Result<CodePoints> in_either_case(const CodePoints& set, Work& work) {
    static const Cases cases = made_cases();
    std::vector<CodePoints::Range> out(set.ranges().begin(), set.ranges().end());
    const CodePoints cased = set.common(cases.all);
    PB_CHECK(work.spend(out.size() + cases.all.ranges().size() / 16));
    for (const auto [low, high] : cased.ranges()) {
        PB_CHECK(work.spend(high - low + 1));
        for (uint32_t c = low; c <= high; ++c)
            for (const uint32_t same : cases.same.at(c)) out.push_back({same, same});
    }
    return CodePoints::of(std::move(out));
}

Result<std::shared_ptr<const CodePoints>> unicode_class(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const CodePoints>> kept;
    const std::string key = loose(name);
    {
        const std::lock_guard lock(mutex);
        if (const auto at = kept.find(key); at != kept.end()) return at->second;
    }
    PB_TRY(CodePoints made, made_class(name));
    auto out = std::make_shared<const CodePoints>(std::move(made));
    const std::lock_guard lock(mutex);
    if (kept.size() < kMaxKeptClasses) kept.emplace(key, out);
    return out;
}

const CodePoints& assigned_characters() {
    static const CodePoints out = [] {
        const auto unassigned = unicode_class("Cn");
        return unassigned ? (*unassigned)->inverted() : CodePoints::all();
    }();
    return out;
}

}  // namespace patchbay::grammar
