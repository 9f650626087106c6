#include "execution/synthetic_tokens.hpp"

#include <algorithm>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::execution {

int32_t synthetic_token(uint64_t seed, uint64_t position, uint32_t vocab_size, std::span<const int32_t> eos,
                        std::span<const int32_t> stop_ids) {
    auto token = static_cast<int32_t>(draw(seed, position, Stream::kSample, 0)[0] % vocab_size);
    const auto ends = [&](int32_t t) {
        return std::ranges::find(eos, t) != eos.end() || std::ranges::find(stop_ids, t) != stop_ids.end();
    };
    // Of so many neighbours one ends nothing, unless every token does.
    for (size_t i = 0; i < eos.size() + stop_ids.size() && ends(token); ++i)
        token = static_cast<int32_t>((static_cast<uint32_t>(token) + 1) % vocab_size);
    return token;
}

float synthetic_logprob(uint64_t seed, uint64_t position) {
    return -static_cast<float>(uniform(draw(seed, position, Stream::kDraft, 1)[0]));
}

int32_t next_allowed(int32_t token, const uint32_t* mask, uint32_t vocab_size) {
    for (uint32_t i = 0; i < vocab_size; ++i) {
        const uint32_t next = (static_cast<uint32_t>(token) + i) % vocab_size;
        if (mask[next / 32] >> (next % 32) & 1) return static_cast<int32_t>(next);
    }
    return token;
}

}  // namespace patchbay::execution
