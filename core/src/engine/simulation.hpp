// What stands in for numbers and for time where a device computes nothing: synthetic tokens, and the clock that whoever
// runs an engine on such a device gives it.
#pragma once
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "engine/request.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

Result<pb_device_info> info_of(const host::Device&);

// Virtual where the device computes nothing, so that a run takes no longer than the host's own work; else real.
Result<std::unique_ptr<Clock>> clock_for(const config::EngineConfig&, const host::Registry&);

// For whoever wants all of an engine but its model: a tiny one, on a device `sim` that takes no time. Of `c` the model,
// the device and the threads change.
void leave_out_model(config::EngineConfig& c, uint32_t vocab_size);

// The token of a position: a pure function of seed and position, none of those that would end the request.
TokenId synthetic_token(uint64_t seed, uint64_t position, uint32_t vocab_size, std::span<const TokenId> eos,
                        std::span<const TokenId> stop_ids);

// Of that token: likewise, by which best_of chooses among outputs that mean nothing.
float synthetic_logprob(uint64_t seed, uint64_t position);

// What a request asks for that no synthetic token can answer.
enum class TokenText { kMadeUp, kScripted };
Result<> check_simulated(const SamplingParams&, TokenText);

// The token, or the next one after it that the mask allows; itself, where it allows none.
TokenId next_allowed(TokenId, std::span<const uint32_t> mask, uint32_t vocab_size);

}  // namespace patchbay::engine
