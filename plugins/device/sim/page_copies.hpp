// Copies of pages of KV, which are charged and not done. The host's memory is neither allocated nor counted.
#pragma once
#include "step_time.hpp"

namespace patchbay {

class PageCopies {
  public:
    explicit PageCopies(StepTime& time) : time_(time) {}

    // As sdk/device.hpp wants them.
    void copy_page(void*, const void*, uint64_t bytes) { time_.charge(within_device(bytes)); }
    void* host_alloc(uint64_t) const { return nullptr; }
    void host_free(void*) const noexcept {}
    void page_to_host(void*, const void*, uint64_t bytes) { time_.charge(across(bytes)); }
    void page_to_device(void*, const void*, uint64_t bytes) { time_.charge(across(bytes)); }

  private:
    static Work within_device(uint64_t bytes) { return {.bytes = 2.0 * static_cast<double>(bytes)}; }
    Work across(uint64_t bytes) const { // to the host's memory or from it
        const double rate = time_.hardware().host_bytes_per_ns;
        return rate > 0 ? Work{.wire_ns = static_cast<double>(bytes) / rate} : within_device(bytes);
    }

    StepTime& time_;
};

}  // namespace patchbay
