// Rows sampled where their logits are: what a sampler on the device reads and writes there, for two steps that may both
// be in flight. Used by Passes. [step thread]
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "runner/device_memory.hpp"
#include "runner/sampled_rows.hpp"

namespace patchbay::runner {

// Whether a sampler's work is on a device; else it wants logits in host memory.
bool runs_on_device(const host::Component& sampler);
// That it can be called beside a device of that name.
Result<> check_sampler(const host::Component& sampler, std::string_view device, const pb_device_info&);

class DeviceSampling {
  public:
    explicit DeviceSampling(const host::Device& device) : device_(&device), inputs_(device), scratch_(device) {}

    // Room for what is sampled of so many rows by two steps, both of which may be in flight.
    Result<> reserve(uint32_t rows, uint32_t max_logprobs);
    // Inside a step, after what makes the logits (rows or more, vocab).
    Result<> enqueue(const SampleCall&, pb_tensor logits);
    bool can_copy_later() const; // without waiting for the step
    pb_tensor newest_tokens() const; // (rows) i32 on the device, of the latest enqueue()
    // Of the oldest enqueue() that was not collected, whose step is over. Valid until the second enqueue() from here.
    Result<SampledRows> collect();
    void forget() { open_.clear(); } // nothing of it will be collected

  private:
    struct Places { // in a step's outputs, in bytes
        uint64_t faults, logprobs, top_tokens, top_logprobs, end;
    };
    static Places places_of(uint32_t rows, uint32_t max_logprobs);
    struct Outputs { // of a step; the host's copy is as far as it is wanted
        explicit Outputs(const host::Device& device) : there(device) {}
        DeviceMemory there;
        std::vector<std::byte> here;
        uint32_t rows = 0, max_logprobs = 0;
    };

    const host::Device* device_;
    DeviceMemory inputs_, scratch_;
    std::array<Outputs, 2> outputs_{Outputs(*device_), Outputs(*device_)};
    size_t newest_ = 0;
    std::deque<size_t> open_; // not collected, the oldest first
};

}  // namespace patchbay::runner
