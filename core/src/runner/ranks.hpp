// What a ModelRunner that is one of several ranks asks of the part that knows the others.
#pragma once
#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "patchbay/abi/device.h"

namespace patchbay::runner {

class Ranks {
  public:
    virtual ~Ranks() = default;
    virtual const pb_group& wire() const = 0; // what the device connects with
    // `disconnect` is called, from any thread, when another rank fails; null: never any more, nor is it under way.
    virtual void watch(std::function<void()> disconnect) = 0;
    // Given how many KV blocks fit here, says how many there are: as many as fit each rank.
    virtual Result<uint32_t> agree_blocks(uint32_t here) = 0;
    virtual Result<> check() const { return {}; } // that the others go on. [any thread]
};

// Ranks that are not there, of a device that computes nothing: this one's share stands for all.
class SimulatedRanks final : public Ranks {
  public:
    explicit SimulatedRanks(uint32_t size)
        : wire_{sizeof(pb_group), 0, size, 0, "127.0.0.1", nullptr, nullptr, nullptr} {}
    const pb_group& wire() const override { return wire_; }
    void watch(std::function<void()>) override {}
    Result<uint32_t> agree_blocks(uint32_t here) override { return here; }

  private:
    pb_group wire_;
};

}  // namespace patchbay::runner
