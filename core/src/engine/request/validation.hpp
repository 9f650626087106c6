// What a request's sampling parameters may be, but for what depends on other parts of the engine.
#pragma once
#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "patchbay/abi/sampler.h"

namespace patchbay::engine {

struct SamplingLimits {
    uint32_t vocab_size;
    int32_t max_logprobs; // −1: the whole vocabulary
};

// Of a count of log-probabilities; sets what −1 stands for. name: what the request calls it.
Result<> check_logprobs(const char* name, std::optional<int32_t>& count, const SamplingLimits&);
// Sets what −1 stands for, and the order of dry_breakers.
Result<> check_sampling(SamplingParams&, const SamplingLimits&);
// What asks for more than a token that is made up (TokenSource::kMadeUp, kMadeUpText) can be.
enum class TokenText { kNone, kGiven };
Result<> check_made_up(const SamplingParams&, TokenText);
// Likewise where drafts are accepted by rates, whatever the model makes of them.
Result<> check_synthetic_acceptance(const SamplingParams&);

// As samplers are shown them; `bias` and `p` outlive what is returned.
pb_sampling_params wire_params(const SamplingParams& p, const std::vector<pb_logit_bias>& bias);
pb_sampling_params params_of_prompt(const SamplingParams&); // of the rows of prompt_logprobs

}  // namespace patchbay::engine
