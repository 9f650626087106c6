// patchbay/sdk/rope.hpp - rotary frequencies from a model's config.json, with their scalings. For model plugins.
// Sources: Su et al., "RoFormer", 2021; Peng et al., "YaRN", 2023; Ding et al., "LongRoPE", 2024; `llama3` as published
// with Llama 3.1's reference code.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn, kLongrope };

struct RopeSettings {
    double theta = 10000;
    RopeScaling scaling = RopeScaling::kNone;
    double factor = 1, original_positions = 8192;
    double low_freq_factor = 1, high_freq_factor = 4; // llama3
    double beta_fast = 32, beta_slow = 1;             // yarn: turns within the original positions,
    bool whole_bounds = true;                         // and whether the pairs between are counted in whole numbers
    std::vector<double> short_factor;                 // longrope, by pair
    float cos_scale = 1;                              // what rope() multiplies cos and sin by
    uint32_t most_positions = UINT32_MAX;             // for which the frequencies hold
};

namespace detail {

inline double in_range(double x, double low, double high, const std::string& what) {
    if (!(x >= low && x <= high)) throw Error(PB_INVALID, what + " is out of range");
    return x;
}

inline void read_yarn(const ModelConfig& config, const std::string& group, RopeSettings& r) {
    r.original_positions = config.get<double>(group + "original_max_position_embeddings",
                                              config.get<double>("max_position_embeddings", 2048));
    in_range(r.original_positions, 1, 1e9, group + "original_max_position_embeddings");
    r.beta_fast = in_range(config.get<double>(group + "beta_fast", 32), 1e-3, 1e6, group + "beta_fast");
    r.beta_slow = in_range(config.get<double>(group + "beta_slow", 1), 1e-3, r.beta_fast, group + "beta_slow");
    r.whole_bounds = config.get<bool>(group + "truncate", true);
    const auto stretch = [&](double by) { return r.factor <= 1 ? 1.0 : 0.1 * by * std::log(r.factor) + 1.0; };
    const double mscale = config.get<double>(group + "mscale", 0),
                 all = config.get<double>(group + "mscale_all_dim", 0);
    const double usual = mscale != 0 && all != 0 ? stretch(mscale) / stretch(all) : stretch(1);
    r.cos_scale = static_cast<float>(
        in_range(config.get<double>(group + "attention_factor", usual), 1e-3, 1e3, group + "attention_factor"));
}

// The factors change with the length of the sequence, under keys that are there already; those for the original range
// hold within it, so a model is served that far.
inline void read_longrope(const ModelConfig& config, const std::string& group, RopeSettings& r) {
    const uint32_t positions = config.integer("max_position_embeddings", 1, 1 << 26);
    std::string key = "original_max_position_embeddings";
    if (!config.find(key)) key = group + key;
    r.most_positions = config.integer(key, 2, 1 << 26);
    const double factor = double{1} * positions / r.most_positions;
    const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(r.most_positions));
    r.cos_scale = static_cast<float>(
        in_range(config.get<double>(group + "attention_factor", usual), 1e-3, 1e3, group + "attention_factor"));
    for (std::string item; config.find(item = group + "short_factor." + std::to_string(r.short_factor.size()));)
        r.short_factor.push_back(in_range(config.require<double>(item), 1e-3, 1e6, item));
    if (r.short_factor.empty()) throw Error(PB_INVALID, "config.json has no '" + group + "short_factor'");
}

}  // namespace detail

struct RopeKeys { // what config.json calls it
    std::string theta = "rope_theta", group = ""; // group: of the scaling's keys; empty: the usual ones
    double theta_if_missing = 10000;
};

// Reads rope_theta, rope_scaling.* (or rope_parameters.*, as newer configurations call them).
inline RopeSettings rope_settings(const ModelConfig& config, const RopeKeys& keys = {}) {
    RopeSettings r;
    std::string group = keys.group;
    if (group.empty())
        group = config.find("rope_parameters.rope_type") || config.find("rope_parameters.rope_theta")
                    ? "rope_parameters."
                    : "rope_scaling.";
    r.theta = config.get<double>(keys.theta, config.get<double>(group + "rope_theta", keys.theta_if_missing));
    detail::in_range(r.theta, 1.001, 1e12, keys.theta);
    auto type = config.find(group + "rope_type");
    if (!type) type = config.find(group + "type");
    if (!type || *type == "default") return r;
    const bool by_factors = config.find(group + "short_factor.0").has_value(); // once called su, then yarn
    if (*type == "longrope" || *type == "su" || (*type == "yarn" && by_factors)) {
        r.scaling = RopeScaling::kLongrope;
        detail::read_longrope(config, group, r);
        return r;
    }
    if (*type != "linear" && *type != "llama3" && *type != "yarn")
        throw Error(
            PB_UNSUPPORTED,
            "rope_type '" + std::string(*type) +
                "' is not supported (supported: default, linear, llama3, yarn, longrope)" +
                (*type == "dynamic" ? "; its frequencies change with a sequence's length, under keys that are cached"
                                    : ""));
    r.factor = detail::in_range(config.require<double>(group + "factor"), 1, 1e6, group + "factor");
    r.scaling = *type == "linear" ? RopeScaling::kLinear : *type == "yarn" ? RopeScaling::kYarn : RopeScaling::kLlama3;
    if (r.scaling == RopeScaling::kYarn) detail::read_yarn(config, group, r);
    if (r.scaling != RopeScaling::kLlama3) return r;
    r.low_freq_factor = config.require<double>(group + "low_freq_factor");
    r.high_freq_factor = config.require<double>(group + "high_freq_factor");
    r.original_positions = config.require<double>(group + "original_max_position_embeddings");
    if (!(r.low_freq_factor > 0 && r.high_freq_factor > r.low_freq_factor && r.original_positions >= 1))
        throw Error(PB_INVALID,
                    "rope_scaling needs 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings");
    return r;
}

// Frequencies of the pairs (i, i + rotary / 2), rotary / 2 of them.
inline std::vector<float> rope_frequencies(const RopeSettings& r, uint32_t rotary) {
    if (r.scaling == RopeScaling::kLongrope && r.short_factor.size() != rotary / 2)
        throw Error(PB_INVALID, "short_factor has " + std::to_string(r.short_factor.size()) + " values, expected " +
                                    std::to_string(rotary / 2));
    // The pair that turns so many times within the original positions, as a real number.
    const auto pair_of = [&](double turns) {
        return rotary * std::log(r.original_positions / (turns * 2 * std::numbers::pi)) / (2 * std::log(r.theta));
    };
    double first = pair_of(r.beta_fast), last = pair_of(r.beta_slow);
    if (r.whole_bounds) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0), last = std::min(last, rotary - 1.0);
    if (first == last) last += 0.001;

    std::vector<float> out(rotary / 2);
    for (uint32_t i = 0; i < rotary / 2; ++i) {
        double f = std::pow(r.theta, -2.0 * i / rotary);
        switch (r.scaling) {
            case RopeScaling::kNone: break;
            case RopeScaling::kLinear: f /= r.factor; break;
            case RopeScaling::kLongrope: f /= r.short_factor[i]; break;
            case RopeScaling::kYarn: { // fast pairs stay, slow ones are stretched, a ramp between
                const double stretched = std::clamp((i - first) / (last - first), 0.0, 1.0);
                f = f / r.factor * stretched + f * (1 - stretched);
                break;
            }
            case RopeScaling::kLlama3: {
                const double wavelength = 2 * std::numbers::pi / f;
                const double low = r.original_positions / r.low_freq_factor,
                             high = r.original_positions / r.high_freq_factor;
                if (wavelength > low) {
                    f /= r.factor;
                } else if (wavelength >= high) { // between: a blend of both
                    const double blend = (r.original_positions / wavelength - r.low_freq_factor) /
                                         (r.high_freq_factor - r.low_freq_factor);
                    f = (1 - blend) * f / r.factor + blend * f;
                }
                break;
            }
        }
        out[i] = static_cast<float>(f);
    }
    return out;
}

}  // namespace patchbay
