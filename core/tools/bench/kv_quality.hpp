// What types of keys and values cost in quality: perplexity over a text, and how often the most likely next token is
// the same. For `patchbay bench kv-quality`.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/engine_config.hpp"
#include "host/registry.hpp"

namespace patchbay::bench {

struct TextScores { // of a text under one engine; each token but the first of a window is predicted
    std::string kv_dtype;                // in words, of all layers
    double bytes_per_token = 0;          // of KV, in full attention
    double nats = 0;                     // mean −ln p of the tokens that came
    std::vector<int32_t> likeliest;    // by predicted token
    double perplexity() const;
};

// The text is cut into windows of `window` tokens that know nothing of one another.
Result<TextScores> score_text(const config::EngineConfig&, const host::Registry&, std::span<const int32_t> tokens,
                              uint32_t window);

double agreement(const TextScores&, const TextScores& with); // share of predictions whose most likely token is the same

// Beside the first.
std::string table_of(std::span<const TextScores>);
std::string json_of(std::span<const TextScores>);

}  // namespace patchbay::bench
