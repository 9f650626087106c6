#include "text/splitter.hpp"

#include <algorithm>

#include "text/characters.hpp"

namespace patchbay::text {
namespace {

struct Part { // of a text, in order, without holes
    Span span;
    bool match;
};

std::vector<Part> parts_of(std::string_view text, const std::vector<Span>& matches, Takes takes) {
    std::vector<Part> out;
    size_t from = 0;
    const bool matched = takes == Takes::kMatches;
    for (const Span match : matches) {
        if (match.begin > from) out.push_back({{from, match.begin}, !matched});
        out.push_back({match, matched});
        from = match.end;
    }
    if (from < text.size()) out.push_back({{from, text.size()}, !matched});
    return out;
}

bool joins_before(Behavior behavior, bool match, bool after_match) { // i > 0: the part before was one or not
    switch (behavior) {
        case Behavior::kMergedWithPrevious: return match && !after_match;
        case Behavior::kMergedWithNext: return after_match && !match;
        case Behavior::kContiguous: return match == after_match;
        case Behavior::kIsolated:
        case Behavior::kRemoved:
            break;
    }
    return false;
}

}  // namespace

Splitter::Scratch Splitter::scratch() const {
    const auto* regex = std::get_if<Regex>(&what_);
    return {regex ? regex->scratch() : Regex::Scratch{}, {}};
}

void Splitter::find_all(std::string_view text, Scratch& scratch) const {
    std::vector<Span>& out = scratch.matches;
    out.clear();
    if (const auto* literal = std::get_if<std::string>(&what_)) {
        for (size_t at = text.find(*literal); at != text.npos; at = text.find(*literal, at + literal->size()))
            out.push_back({at, at + literal->size()});
    } else if (const auto* is_one = std::get_if<IsOne>(&what_)) {
        for (size_t at = 0; at < text.size();) {
            const size_t begin = at;
            if ((*is_one)(next_character(text, at))) out.push_back({begin, at});
        }
    } else {
        std::get<Regex>(what_).find_all(text, scratch.regex, out);
    }
}

void Splitter::split(std::string_view text, Scratch& scratch, std::vector<Span>& out) const {
    find_all(text, scratch);
    const std::vector<Span>& matches = scratch.matches;
    if (behavior_ == Behavior::kIsolated) { // either way all of it stays; the common case
        size_t from = 0;
        for (const Span match : matches) {
            if (match.begin > from) out.push_back({from, match.begin});
            if (match.end > match.begin) out.push_back(match);
            from = match.end;
        }
        if (from < text.size()) out.push_back({from, text.size()});
        return;
    }
    const std::vector<Part> parts = parts_of(text, matches, takes_);
    const size_t first = out.size();
    for (size_t i = 0; i < parts.size(); ++i) {
        if (behavior_ == Behavior::kRemoved && parts[i].match) continue;
        if (i > 0 && out.size() > first && joins_before(behavior_, parts[i].match, parts[i - 1].match))
            out.back().end = parts[i].span.end;
        else
            out.push_back(parts[i].span);
    }
    out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                             [](Span s) { return s.begin == s.end; }),
              out.end());
}

}  // namespace patchbay::text
