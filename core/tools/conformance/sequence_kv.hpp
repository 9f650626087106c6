// The KV of one sequence of a model under test, on host memory, and the reference attention over it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/drawn_weights.hpp"

namespace patchbay::conformance {

class SequenceKv {
  public:
    static constexpr uint32_t kMaxTokens = 64;

    explicit SequenceKv(const DrawnWeights& weights) : weights_(weights) {} // whose sinks it reads
    Result<> lay_out(const host::Component& model, uint32_t layer_count);

    bool has_states() const; // recurrent layers, which keep no KV
    void clear();
    // As pb_forward.attend, of the tokens at these positions, each one after the one before it.
    Result<> attend(uint32_t layer, std::span<const int32_t> positions, const pb_tensor& out, const pb_tensor& q,
                    const pb_tensor* k, const pb_tensor* v);

  private:
    static constexpr uint32_t kBlock = 4;
    const DrawnWeights& weights_;
    std::vector<pb_kv_spec> specs_;         // by layer
    std::vector<std::vector<float>> pages_; // by layer
};

}  // namespace patchbay::conformance
