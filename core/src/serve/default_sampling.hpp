// The sampling parameters that a model recommends: those of requests that do not set them.
#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "engine/request/request.hpp"

namespace patchbay::serve {

struct DefaultSampling {
    engine::SamplingParams params;
    std::string text; // "temperature 0.6, top_k 20"; empty: the model recommends none
};

// The parameters of the folder's generation_config.json that are marked in engine/request/parameters.cpp: those that
// vLLM takes, but for max_new_tokens. The file, or any key in it, may be missing.
Result<DefaultSampling> default_sampling(const std::filesystem::path& folder);

}  // namespace patchbay::serve
