#include "engine/speculation/verification.hpp"

#include <utility>

#include "engine/request/ids.hpp"

namespace patchbay::engine {
namespace {

double uniform_of(uint32_t high, uint32_t low) { // in (0, 1), 53 bits of it
    return (static_cast<double>((uint64_t{high} << 32 | low) >> 11) + 0.5) * 0x1p-53;
}

float at_least_0(float x) { return x > 0 ? x : 0; }

}  // namespace

TokenId draw_token(std::span<const float> weights, const PhiloxBlock& bits) {
    double total = 0;
    for (const float w : weights) total += at_least_0(w);
    double left = uniform_of(bits[2], bits[3]) * total;
    TokenId last = -1;
    for (size_t t = 0; t < weights.size(); ++t) {
        if (!(weights[t] > 0)) continue;
        last = static_cast<TokenId>(t);
        left -= weights[t];
        if (left < 0) break;
    }
    return last;
}

TokenId verify_by_rejection(std::span<const float> p, std::span<const float> q, TokenId draft, uint64_t seed,
                            uint64_t position) {
    const auto at = static_cast<size_t>(draft);
    const PhiloxBlock bits = draw(seed, position, Stream::kReject, 0);
    const double drawn_with = q.empty() ? 1 : q[at], wanted = at_least_0(p[at]);
    if (uniform_of(bits[0], bits[1]) * drawn_with < wanted) return draft;
    std::vector<float> rest(p.begin(), p.end());
    if (q.empty()) rest[at] = 0;
    else
        for (size_t t = 0; t < rest.size(); ++t) rest[t] = at_least_0(rest[t] - at_least_0(q[t]));
    const TokenId other = draw_token(rest, bits);
    if (other >= 0) return other;
    return wanted > 0 ? draft : draw_token(p, bits); // p and q differ by rounding alone
}

SyntheticAcceptance::SyntheticAcceptance(std::span<const double> rates) {
    double before = 1;
    for (const double rate : rates) given_before_.push_back(before > 0 ? rate / std::exchange(before, rate) : 0);
}

bool SyntheticAcceptance::accepts(uint32_t place, uint64_t seed, uint64_t position) const {
    const PhiloxBlock bits = draw(seed, position, Stream::kReject, 0);
    return place < given_before_.size() && uniform_of(bits[0], bits[1]) < given_before_[place];
}

}  // namespace patchbay::engine
