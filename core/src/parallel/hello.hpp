// The first message of a rank: which one it is, of which job, and from where.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::parallel {

struct RankInfo {
    uint32_t rank = 0, pid = 0;
    std::string host;
};
std::string text_of(const RankInfo&); // "rank 1 (node2, pid 4711)"

// What a rank sends about itself when it joins.
struct Hello {
    std::string job; // must equal rank 0's
    uint32_t rank = 0, size = 0, pid = 0;
    std::string host;
};
std::string bytes_of(const Hello&);
Result<Hello> read_hello(std::string_view bytes);

}  // namespace patchbay::parallel
