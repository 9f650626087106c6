// Device and host memory as a test keeps it: of each token's place, what the token and all those before it come to. Who
// finds another sequence's value in its pages has been given wrong ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.hpp"

namespace patchbay::engine::testing {

inline uint64_t content_of(std::span<const int32_t> tokens) { // of the last one's place
    uint64_t h = 17;
    for (const int32_t t : tokens) h = (h ^ static_cast<uint64_t>(t)) * 0x9E3779B97F4A7C15u + 1;
    return h;
}

class PageMemory {
  public:
    PageMemory(uint32_t pages, uint32_t slots, uint32_t page_size)
        : size_(page_size), device_(size_t{pages} * size_), host_(size_t{slots} * size_) {}

    void copy(const kv::PageCopy& c) {
        const bool to_host = c.way == kv::Way::kToHost, from_host = c.way == kv::Way::kToDevice;
        std::copy_n(at(from_host ? host_ : device_, c.from), size_, at(to_host ? host_ : device_, c.to));
    }
    void write(const kv::BlockTable& t, size_t group, uint32_t token, uint64_t what) { *place(t, group, token) = what; }
    uint64_t read(const kv::BlockTable& t, size_t group, uint32_t token) { return *place(t, group, token); }

  private:
    std::vector<uint64_t>::iterator at(std::vector<uint64_t>& m, kv::BlockId page) const {
        return m.begin() + static_cast<ptrdiff_t>(page) * size_;
    }
    std::vector<uint64_t>::iterator place(const kv::BlockTable& t, size_t group, uint32_t token) {
        return at(device_, t.pages.at(group).at(token / size_)) + token % size_;
    }
    uint32_t size_;
    std::vector<uint64_t> device_, host_;
};

}  // namespace patchbay::engine::testing
