// Verification of drafts other than by comparing them with what is sampled: by rejection, or by given rates. Either way
// a draft's row becomes the draft, where it is accepted, or another token: what appends tokens sees no difference.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/placement/placed.hpp"
#include "engine/sampling/logits_reader.hpp"
#include "engine/speculation/verification.hpp"

namespace patchbay::execution {
enum class TokenSource;
}

namespace patchbay::engine {

class DraftRecords;
struct SampleRows;
struct StepSamples;

// That a sampler gives what verification by these settings needs.
Result<> check_verification(const config::SpeculationSettings&, const host::Component& sampler, execution::TokenSource);

class DraftVerification final : public LogitsReader {
  public:
    DraftVerification(const config::SpeculationSettings&, uint32_t vocab_size, DraftRecords&);

    bool is_by_rejection() const { return settings_.rejection_sample_method == config::Verification::kRejection; }

    void begin(std::span<const Placed> step) { step_ = step; } // whose drafts are verified
    Result<> read(const host::Component& sampler, const SampleRows&, std::span<const float> logits) override;
    void decide(StepSamples&) override;
    void accept_by_rates(StepSamples&) const;

  private:
    struct Decision { // on a draft: what its row becomes
        uint32_t row;
        TokenId token;
        float logprob; // of the raw logits, where the row asks
    };
    Result<std::vector<float>> target_probabilities(const host::Component& sampler, const SampleRows&,
                                                    std::span<const float> logits) const;
    void verify(const Placed&, const SampleRows&, std::span<const float> logits, std::span<const float> target);

    const config::SpeculationSettings& settings_;
    const uint32_t vocab_size_;
    DraftRecords& drafts_;
    std::optional<SyntheticAcceptance> synthetic_;
    std::span<const Placed> step_;
    std::vector<Decision> decisions_;
};

}  // namespace patchbay::engine
