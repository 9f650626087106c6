// Host memory after bytes that may be neither read nor written, for arrays in which an index of −1 means "none".
#pragma once
#include <cstddef>
#include <memory>

#include "base/result.hpp"

namespace patchbay::conformance {

class FencedMemory {
  public:
    FencedMemory() = default;
    static Result<FencedMemory> create(size_t bytes, size_t fence); // at least so many before; filled with 0xff
    std::byte* data() const { return data_; } // as mmap aligns it
    size_t size() const { return size_; }

  private:
    std::shared_ptr<void> mapping_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace patchbay::conformance
