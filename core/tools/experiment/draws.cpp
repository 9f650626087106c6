#include "experiment/draws.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace patchbay::experiment {
namespace {

double normal_of(const PhiloxBlock& b) { // Box and Muller, from the first two words
    return std::sqrt(-2 * std::log(uniform(b[0]))) * std::cos(2 * std::numbers::pi * uniform(b[1]));
}

}  // namespace

Draws::Draws(uint64_t seed, uint64_t repeat) {
    const PhiloxBlock b = draw(seed, repeat, Stream::kWorkload, 0);
    key_ = uint64_t{b[0]} << 32 | b[1];
}

PhiloxBlock Draws::bits(Purpose purpose, uint64_t number, uint32_t attempt) const {
    return draw(key_, number, Stream::kWorkload, static_cast<uint32_t>(purpose) << 24 | attempt);
}

double Draws::uniform(Purpose p, uint64_t n) const { return patchbay::uniform(bits(p, n)[0]); }

uint64_t Draws::word(Purpose p, uint64_t n) const {
    const PhiloxBlock b = bits(p, n);
    return uint64_t{b[0]} << 32 | b[1];
}

// The high half of word × bound: a bias below bound / 2^64.
uint64_t Draws::below(Purpose p, uint64_t n, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(word(p, n)) * bound) >> 64);
}

double Draws::exponential(Purpose p, uint64_t n) const { return -std::log(uniform(p, n)); }
double Draws::normal(Purpose p, uint64_t n) const { return normal_of(bits(p, n)); }

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; shapes below 1 by their boost.
double Draws::gamma(Purpose p, uint64_t n, double shape) const {
    const double boosted = shape < 1 ? shape + 1 : shape;
    const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (uint32_t attempt = 0;; ++attempt) {
        const PhiloxBlock b = bits(p, n, attempt);
        const double x = normal_of(b), v = std::pow(1 + c * x, 3);
        if (v <= 0 || std::log(patchbay::uniform(b[2])) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
        return shape < 1 ? d * v * std::pow(patchbay::uniform(b[3]), 1 / shape) : d * v;
    }
}

double Draws::seconds(Purpose p, uint64_t n, const Duration& duration) const {
    if (const auto* t = std::get_if<FixedTime>(&duration)) return t->seconds;
    if (const auto* t = std::get_if<ExponentialTime>(&duration)) return t->mean * exponential(p, n);
    if (const auto* t = std::get_if<UniformTime>(&duration)) return t->min + (t->max - t->min) * uniform(p, n);
    const auto& t = std::get<LognormalTime>(duration);
    const double variance = std::log1p(t.cv * t.cv);
    return t.mean * std::exp(std::sqrt(variance) * normal(p, n) - variance / 2);
}

std::vector<uint32_t> Draws::permutation(Purpose p, uint32_t count) const { // Fisher and Yates
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(p, i, i)]);
    return order;
}

LengthSource::LengthSource(Length length) : length_(std::move(length)) {
    if (const auto* z = std::get_if<ZipfLength>(&length_)) {
        double sum = 0;
        for (uint64_t k = 0; k <= z->max - z->min; ++k)
            zipf_.push_back(sum += std::pow(static_cast<double>(k + 1), -z->exponent));
    }
}

uint32_t LengthSource::draw(const Draws& draws, Purpose p, uint64_t n) const {
    if (const auto* l = std::get_if<FixedLength>(&length_)) return l->tokens;
    if (const auto* l = std::get_if<UniformLength>(&length_))
        return l->min + static_cast<uint32_t>(draws.below(p, n, uint64_t{l->max} - l->min + 1));
    if (const auto* l = std::get_if<LognormalLength>(&length_)) {
        const double variance = std::log1p(l->cv * l->cv), mu = std::log(l->mean) - variance / 2;
        const double x = std::round(std::exp(mu + std::sqrt(variance) * draws.normal(p, n)));
        return static_cast<uint32_t>(std::clamp(x, double(l->min), double(l->max)));
    }
    if (const auto* l = std::get_if<ZipfLength>(&length_)) {
        const double at = draws.uniform(p, n) * zipf_.back();
        const auto k = std::lower_bound(zipf_.begin(), zipf_.end(), at) - zipf_.begin();
        return std::min(l->max, l->min + static_cast<uint32_t>(k));
    }
    const auto& values = std::get<EmpiricalLength>(length_).values;
    return values[draws.below(p, n, values.size())];
}

}  // namespace patchbay::experiment
