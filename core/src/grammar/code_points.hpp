// Sets of Unicode code points, and the byte sequences of UTF-8 that spell them. For the front ends and the compiler.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace patchbay::grammar {

class CodePoints {
  public:
    struct Range { // inclusive
        uint32_t low, high;
        bool operator==(const Range&) const = default;
    };
    static constexpr uint32_t kLast = 0x10FFFF;
    static CodePoints all(); // without surrogates, which no UTF-8 spells
    static CodePoints of(std::vector<Range>); // in any order

    void add(uint32_t low, uint32_t high); // of many, of() is the faster way
    void add(const CodePoints&);
    CodePoints inverted() const;
    CodePoints without(const CodePoints&) const;
    CodePoints common(const CodePoints&) const;
    bool contains(uint32_t) const;
    bool empty() const { return ranges_.empty(); }
    std::span<const Range> ranges() const { return ranges_; } // sorted, disjoint, not adjacent

  private:
    static CodePoints joined(std::vector<Range> sorted);
    std::vector<Range> ranges_;
};

struct ByteRange { // inclusive
    uint8_t low, high;
};
using ByteRanges = std::vector<ByteRange>; // one a byte of a character: 1 to 4

std::vector<ByteRanges> utf8_ranges(const CodePoints&); // surrogates are left out
std::string utf8(uint32_t code_point);

}  // namespace patchbay::grammar
