// patchbay/sdk/rope.hpp - rotary frequencies from a model's config.json, with the scalings of the Llama family.
// Source: Su et al., "RoFormer", 2021; `llama3` as published with Llama 3.1's reference code.
#pragma once
#include <cmath>
#include <numbers>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

enum class RopeScaling { kNone, kLinear, kLlama3 };

struct RopeSettings {
    double theta = 10000;
    RopeScaling scaling = RopeScaling::kNone;
    double factor = 1, low_freq_factor = 1, high_freq_factor = 4, original_positions = 8192;
};

// Reads rope_theta, rope_scaling.* (or rope_parameters.*, as newer configurations call them).
inline RopeSettings rope_settings(const ModelConfig& config) {
    RopeSettings r;
    const std::string group = config.find("rope_parameters.rope_type") || config.find("rope_parameters.rope_theta") ? "rope_parameters." : "rope_scaling.";
    r.theta = config.get<double>("rope_theta", config.get<double>(group + "rope_theta", 10000));
    auto type = config.find(group + "rope_type");
    if (!type) type = config.find(group + "type");
    if (!(r.theta >= 1 && r.theta <= 1e12)) throw Error(PB_INVALID, "rope_theta is out of range");
    if (!type || *type == "default") return r;
    if (*type != "linear" && *type != "llama3")
        throw Error(PB_UNSUPPORTED, "rope_type '" + std::string(*type) + "' is not supported (supported: default, linear, llama3)");
    r.factor = config.require<double>(group + "factor");
    if (!(r.factor >= 1 && r.factor <= 1e6)) throw Error(PB_INVALID, "rope_scaling.factor is out of range");
    r.scaling = *type == "linear" ? RopeScaling::kLinear : RopeScaling::kLlama3;
    if (r.scaling == RopeScaling::kLinear) return r;
    r.low_freq_factor = config.require<double>(group + "low_freq_factor");
    r.high_freq_factor = config.require<double>(group + "high_freq_factor");
    r.original_positions = config.require<double>(group + "original_max_position_embeddings");
    if (!(r.low_freq_factor > 0 && r.high_freq_factor > r.low_freq_factor && r.original_positions >= 1))
        throw Error(PB_INVALID, "rope_scaling needs 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings");
    return r;
}

// Frequencies of the pairs (i, i + rotary / 2), rotary / 2 of them.
inline std::vector<float> rope_frequencies(const RopeSettings& r, uint32_t rotary) {
    std::vector<float> out(rotary / 2);
    for (uint32_t i = 0; i < rotary / 2; ++i) {
        double f = std::pow(r.theta, -2.0 * i / rotary);
        if (r.scaling == RopeScaling::kLinear) f /= r.factor;
        if (r.scaling == RopeScaling::kLlama3) {
            const double wavelength = 2 * std::numbers::pi / f;
            const double low = r.original_positions / r.low_freq_factor, high = r.original_positions / r.high_freq_factor;
            if (wavelength > low) {
                f /= r.factor;
            } else if (wavelength >= high) { // between: a blend of both
                const double blend = (r.original_positions / wavelength - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
                f = (1 - blend) * f / r.factor + blend * f;
            }
        }
        out[i] = static_cast<float>(f);
    }
    return out;
}

}  // namespace patchbay
