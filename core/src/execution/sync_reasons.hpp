// Why a step waits until the one before it is back: words of metrics, traces and decision logs.
#pragma once
#include <string_view>

namespace patchbay::execution::sync_reason {

inline constexpr std::string_view kOff = "off", kDevice = "device", kProposer = "proposer", kRanks = "ranks",
                                  kHostSampler = "host_sampler", kProbation = "probation", kSwap = "swap",
                                  kPreemption = "preemption", kHistory = "history", kPooling = "pooling",
                                  kStructuredOutput = "structured_output", kBeamSearch = "beam_search";

inline constexpr std::string_view kAll[] = {kOff,  kDevice,     kProposer, kRanks,   kHostSampler,      kProbation,
                                            kSwap, kPreemption, kHistory,  kPooling, kStructuredOutput, kBeamSearch};

}  // namespace patchbay::execution::sync_reason
