#include "grammar/code_points.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace patchbay::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

uint32_t length_of(uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

std::array<uint8_t, 4> encode(uint32_t c) {
    const auto byte = [](uint32_t x) { return static_cast<uint8_t>(x); };
    switch (length_of(c)) {
        case 1: return {byte(c)};
        case 2: return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
        case 3: return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
        default:
            return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
                    byte(0x80 | (c & 63))};
    }
}

// Of characters of equal length: cut where continuation bytes do not run through all their values.
void split(uint32_t low, uint32_t high, std::vector<ByteRanges>& out) {
    const uint32_t length = length_of(low);
    for (uint32_t i = 1; i < length; ++i) {
        const uint32_t mask = (1u << (6 * i)) - 1;
        if ((low & ~mask) == (high & ~mask)) continue;
        if ((low & mask) != 0) {
            split(low, low | mask, out);
            return split((low | mask) + 1, high, out);
        }
        if ((high & mask) != mask) {
            split(low, (high & ~mask) - 1, out);
            return split(high & ~mask, high, out);
        }
    }
    const auto a = encode(low), b = encode(high);
    ByteRanges bytes;
    for (uint32_t i = 0; i < length; ++i) bytes.push_back({a[i], b[i]});
    out.push_back(std::move(bytes));
}

}  // namespace

CodePoints CodePoints::all() { return of({{0, kFirstSurrogate - 1}, {kLastSurrogate + 1, kLast}}); }

CodePoints CodePoints::of(std::vector<Range> ranges) {
    std::ranges::sort(ranges, {}, &Range::low);
    return joined(std::move(ranges));
}

CodePoints CodePoints::joined(std::vector<Range> sorted) {
    CodePoints out;
    for (const Range r : sorted) {
        if (out.ranges_.empty() || out.ranges_.back().high + 1 < r.low) out.ranges_.push_back(r);
        else out.ranges_.back().high = std::max(out.ranges_.back().high, r.high);
    }
    return out;
}

void CodePoints::add(uint32_t low, uint32_t high) {
    const auto begin = std::ranges::lower_bound(ranges_, low, {}, [](Range r) { return r.high + 1; });
    auto end = begin;
    for (; end != ranges_.end() && end->low <= high + 1; ++end) {
        low = std::min(low, end->low);
        high = std::max(high, end->high);
    }
    ranges_.insert(ranges_.erase(begin, end), Range{low, high});
}

void CodePoints::add(const CodePoints& other) {
    std::vector<Range> all;
    all.reserve(ranges_.size() + other.ranges_.size());
    std::ranges::merge(ranges_, other.ranges_, std::back_inserter(all), {}, &Range::low, &Range::low);
    *this = joined(std::move(all));
}

CodePoints CodePoints::inverted() const { return all().without(*this); }

CodePoints CodePoints::without(const CodePoints& other) const {
    CodePoints out;
    auto first = other.ranges_.begin(); // that does not lie before r
    for (Range r : ranges_) {
        while (first != other.ranges_.end() && first->high < r.low) ++first;
        for (auto cut = first; cut != other.ranges_.end() && cut->low <= r.high; ++cut) {
            if (cut->low > r.low) out.ranges_.push_back({r.low, cut->low - 1});
            r.low = cut->high + 1;
            if (r.low > r.high) break;
        }
        if (r.low <= r.high) out.ranges_.push_back(r);
    }
    return out;
}

CodePoints CodePoints::common(const CodePoints& other) const { return without(without(other)); }

bool CodePoints::contains(uint32_t c) const {
    const auto at = std::ranges::lower_bound(ranges_, c, {}, &Range::high);
    return at != ranges_.end() && at->low <= c;
}

std::vector<ByteRanges> utf8_ranges(const CodePoints& set) {
    std::vector<ByteRanges> out;
    const CodePoints spelled = set.common(CodePoints::all());
    for (const auto [low, high] : spelled.ranges()) {
        uint32_t from = low;
        for (const uint32_t last : {0x7Fu, 0x7FFu, 0xFFFFu, CodePoints::kLast}) {
            if (from > last || from > high) continue;
            split(from, std::min(high, last), out);
            from = last + 1;
        }
    }
    return out;
}

std::string utf8(uint32_t c) {
    const auto bytes = encode(c);
    return {bytes.begin(), bytes.begin() + length_of(c)};
}

}  // namespace patchbay::grammar
