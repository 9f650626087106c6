#include "grammar/unicode_classes.hpp"

#include <unicode/uniset.h>

#include <algorithm>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::grammar {

Result<CodePoints> unicode_class(std::string_view name) {
    const bool plain = !name.empty() && name.size() <= 60 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '=' ||
               c == ' ' || c == '-';
    });
    UErrorCode error = U_ZERO_ERROR;
    const icu::UnicodeSet set(icu::UnicodeString::fromUTF8("\\p{" + std::string(plain ? name : "") + "}"), error);
    if (!plain || U_FAILURE(error)) return invalid("no property of Unicode: '" + std::string(name.substr(0, 60)) + "'");
    CodePoints out;
    for (int32_t i = 0; i < set.getRangeCount(); ++i)
        out.add(static_cast<uint32_t>(set.getRangeStart(i)), static_cast<uint32_t>(set.getRangeEnd(i)));
    return out.common(CodePoints::all());
}

const CodePoints& assigned_characters() {
    static const CodePoints out = [] {
        const auto unassigned = unicode_class("Cn");
        return unassigned ? unassigned->inverted() : CodePoints::all();
    }();
    return out;
}

}  // namespace patchbay::grammar
