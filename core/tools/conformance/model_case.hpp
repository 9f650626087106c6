// A model under test with weights drawn at random, and its forward passes over one sequence: of a decoder from its
// first token on, of a draft head from hidden states drawn at random.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/drawn_weights.hpp"
#include "conformance/reference_device.hpp"
#include "conformance/sequence_kv.hpp"

namespace patchbay::conformance {

class ModelCase {
  public:
    // component: after load_config(), which gave the facts.
    static Result<std::unique_ptr<ModelCase>> make(const host::Component& component, const pb_model_facts& facts);

    DrawnWeights& weights() { return weights_; }
    const pb_model_facts& facts() const { return facts_; }
    bool is_head() const { return head_; }
    bool has_states() const { return kv_.has_states(); } // whose sequences are computed in one piece here

    struct Computed {
        std::vector<float> logits; // (tokens, vocab); of a head without layers: for each draft step
        std::vector<float> hidden; // (tokens, hidden), where the model gives them
    };
    // The tokens in pieces of these lengths, each a forward pass: the sum is the number of tokens.
    Result<Computed> compute(std::span<const int32_t> ids, std::span<const uint32_t> pieces);
    Result<Computed> compute(std::span<const int32_t> ids) {
        const uint32_t all = static_cast<uint32_t>(ids.size());
        return compute(ids, {&all, 1});
    }

  private:
    ModelCase(const host::Component& component, const pb_model_facts& facts);
    Result<> pass(std::span<const int32_t> ids, uint32_t begin, uint32_t draft_step, Computed& to);
    pb_tensor temp(pb_dtype, int32_t rank, const int64_t* shape);

    static constexpr uint32_t kStatePage = 1 << 16;
    const host::Component& component_;
    const pb_model_facts facts_;
    ReferenceDevice device_;
    DrawnWeights weights_;
    SequenceKv kv_{weights_};
    std::vector<std::vector<float>> temps_;   // of the pass under way
    std::vector<float> features_, state_page_;
    std::vector<int32_t> positions_;          // of the pass under way
    std::vector<int32_t> starts_, one_page_{0}, first_chunk_{1};
    bool head_ = false;
    uint32_t draft_steps_ = 0;                // of a head without layers
};

}  // namespace patchbay::conformance
