// Memory that is counted and not taken.
#pragma once
#include <cstdint>
#include <string>

namespace patchbay {

class CountedMemory {
  public:
    CountedMemory(std::string owner, uint64_t bytes) : owner_(std::move(owner)), bytes_(bytes), free_bytes_(bytes) {}

    uint64_t total_bytes() const { return bytes_; }
    uint64_t free_bytes() const { return free_bytes_; }
    void take(uint64_t bytes, const char* what); // throws Error where less is free
    void give_back(uint64_t bytes) { free_bytes_ += bytes; }

    // As sdk/device.hpp wants them.
    void* alloc(uint64_t bytes);
    void free(void* memory);
    void to_device(void*, const void*, uint64_t) const {}
    void to_host(void* to, const void* from, uint64_t bytes) const; // zeros

  private:
    const std::string owner_; // for errors
    const uint64_t bytes_;
    uint64_t free_bytes_;
};

}  // namespace patchbay
