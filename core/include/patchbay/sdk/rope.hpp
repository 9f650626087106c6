// patchbay/sdk/rope.hpp - rotary frequencies from a model's config.json, with their scalings. For model plugins.
// Sources: Su et al., "RoFormer", 2021; Peng et al., "YaRN", 2023; Ding et al., "LongRoPE", 2024; `llama3` as published
// with Llama 3.1's reference code.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn, kLongrope, kDynamic };

struct RopeSettings {
    double theta = 10000;
    RopeScaling scaling = RopeScaling::kNone;
    double factor = 1, original_positions = 8192;
    double low_freq_factor = 1, high_freq_factor = 4; // llama3
    double beta_fast = 32, beta_slow = 1;             // yarn: turns within the original positions,
    bool whole_bounds = true;                         // and whether the pairs between are counted in whole numbers
    std::vector<double> pair_factor;                  // longrope
    double length = 0;                                // dynamic: of the sequence that the frequencies are for
    float cos_scale = 1;                              // what rope() multiplies cos and sin by
    uint32_t max_positions = UINT32_MAX;             // for which the frequencies hold
    // How far the scaling reaches, which may be further than max_position_embeddings; 0: no further.
    uint32_t reach = 0;
    double turned = 1;                                // part of a head
};

namespace detail {

inline double in_range(double x, double low, double high, const std::string& what) {
    if (!(x >= low && x <= high)) throw Error(PB_INVALID, what + " is out of range");
    return x;
}

// Positions that the unscaled frequencies were trained for; beside the scaling's keys or, first, at the top.
inline double original_positions(const ModelConfig& config, const std::string& group, double missing) {
    const std::string key = "original_max_position_embeddings";
    return in_range(config.get<double>(config.find(key) ? key : group + key, missing), 2, 1e9, group + key);
}

inline void read_yarn(const ModelConfig& config, const std::string& group, RopeSettings& r) {
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

// There are two sets of factors, and a sequence that grows past the original range would change from one to the other
// under keys that are cached. So all sequences have the long ones if the host says that some may grow past it.
inline void read_longrope(const ModelConfig& config, const std::string& group, double positions, RopeSettings& r) {
    const bool is_long = config.raw.max_length > r.original_positions;
    const std::string factors = group + (is_long ? "long_factor" : "short_factor");
    r.max_positions = is_long ? UINT32_MAX : static_cast<uint32_t>(r.original_positions);
    const double factor = in_range(config.get<double>(group + "factor", positions / r.original_positions), 1e-3, 1e6,
                                   group + "factor");
    const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(r.original_positions));
    r.cos_scale = static_cast<float>(
        in_range(config.get<double>(group + "attention_factor", usual), 1e-3, 1e3, group + "attention_factor"));
    constexpr size_t kMaxPairs = 512; // of the largest head
    for (std::string item; config.find(item = factors + "." + std::to_string(r.pair_factor.size()));) {
        if (r.pair_factor.size() == kMaxPairs)
            throw Error(PB_INVALID, factors + " has more than " + std::to_string(kMaxPairs) + " values");
        r.pair_factor.push_back(in_range(config.require<double>(item), 1e-3, 1e6, item));
    }
    if (r.pair_factor.empty()) throw Error(PB_INVALID, "config.json has no '" + factors + "'");
}

// How far a scaling by r.factor reaches that begins at so many positions.
inline void reach_from(double positions, RopeSettings& r) {
    r.reach = static_cast<uint32_t>(std::min(positions * r.factor, 1e9));
}

// The base grows with the length of the longest sequence past the original range, likewise.
inline void read_dynamic(const ModelConfig& config, const std::string& group, RopeSettings& r) {
    r.factor = in_range(config.require<double>(group + "factor"), 1, 1e6, group + "factor");
    r.length = std::max<double>(r.original_positions, config.raw.max_length);
    reach_from(r.original_positions, r);
    const bool is_long = config.raw.max_length > r.original_positions;
    r.max_positions = is_long ? r.reach : static_cast<uint32_t>(r.original_positions);
}

inline void read_llama3(const ModelConfig& config, const std::string& group, RopeSettings& r) {
    r.low_freq_factor = config.require<double>(group + "low_freq_factor");
    r.high_freq_factor = config.require<double>(group + "high_freq_factor");
    if (!(r.low_freq_factor > 0 && r.high_freq_factor > r.low_freq_factor))
        throw Error(PB_INVALID, group + "low_freq_factor and high_freq_factor need 0 < low < high");
}

}  // namespace detail

struct RopeKeys { // what config.json calls it, and what it means where it says nothing
    std::string theta = "rope_theta", group = ""; // group: of the scaling's keys; empty: the usual ones
    double theta_if_missing = 10000;
    uint32_t positions_if_missing = 2048;
    enum class Turned { kWhole, kPart } turned = Turned::kWhole; // of a head
    double part_if_missing = 1;
    // Phi 3's: original_max_position_embeddings is read at the top only, and su and yarn were names of longrope.
    std::optional<double> original_positions = std::nullopt;
};

namespace detail {

// rope_scaling where anything is in it, else rope_parameters, as transformers 5 chooses.
inline std::string rope_group(const ModelConfig& config) {
    const bool old_form = config.has_section("rope_scaling"), new_form = config.has_section("rope_parameters");
    if (old_form && new_form)
        config.warn("rope_scaling and rope_parameters are both there: rope_scaling is read, as transformers 5 does");
    for (const char* kind : {"rope_parameters.full_attention", "rope_parameters.sliding_attention"})
        if (config.has_section(kind) || config.find(kind))
            throw Error(PB_UNSUPPORTED, std::string(kind) + ": this model has one kind of positions for all layers");
    return old_form ? "rope_scaling." : "rope_parameters.";
}

inline RopeScaling rope_scaling_of(std::string_view type) {
    if (type == "default") return RopeScaling::kNone;
    if (type == "linear") return RopeScaling::kLinear;
    if (type == "llama3") return RopeScaling::kLlama3;
    if (type == "yarn") return RopeScaling::kYarn;
    if (type == "longrope") return RopeScaling::kLongrope;
    if (type == "dynamic") return RopeScaling::kDynamic;
    throw Error(PB_UNSUPPORTED, "rope_type '" + std::string(type) +
                                    "' is not supported (supported: default, linear, llama3, yarn, longrope, dynamic)");
}

// The part of a head that turns. Where the model turns whole heads transformers does not read the part, or fails.
inline double turned_part(const ModelConfig& config, const std::string& group, const RopeKeys& keys,
                          RopeScaling scaling) {
    const std::string name = "partial_rotary_factor";
    const auto nested = config.find(group + name), above = config.find(name);
    if (nested && above && *nested != *above)
        config.warn(name + " is " + std::string(*above) + " and " + group + name + " " + std::string(*nested) +
                    ": the latter is read, as transformers 5 does");
    const double part = config.get<double>(nested ? group + name : name, keys.part_if_missing);
    if (keys.turned == RopeKeys::Turned::kPart || part == 1) return part;
    if (scaling != RopeScaling::kNone)
        throw Error(PB_UNSUPPORTED,
                    name + " " + std::to_string(part) + " is not supported (this model turns whole heads)");
    config.warn(name + " is not read: this model turns whole heads, as in transformers 5");
    return 1;
}

// transformers 5 refuses max_position_embeddings: null. 4 takes it, but reads rope_parameters not at all, and of
// rope_scaling neither the theta nor the part of a head: refused where that makes a difference.
inline void refuse_null_positions(const ModelConfig& config, const std::string& group, const RopeKeys& keys) {
    if (!config.is_null("max_position_embeddings")) return;
    const std::string theta = group + "rope_theta", part = group + "partial_rotary_factor";
    const auto differs = [&](const std::string& nested, const std::string& above, double if_missing) {
        return config.find(nested) && config.require<double>(nested) != config.get<double>(above, if_missing);
    };
    std::string what;
    if (group.starts_with("rope_parameters") && config.has_section("rope_parameters")) what = "rope_parameters";
    else if (differs(theta, keys.theta, keys.theta_if_missing)) what = theta;
    else if (differs(part, "partial_rotary_factor", keys.part_if_missing)) what = part;
    if (!what.empty())
        throw Error(PB_INVALID, "max_position_embeddings is null, expected a number: with null transformers 5 fails, "
                                "and 4 does not read " + what);
}

}  // namespace detail

// Reads what config.json says of positions in the form of transformers 5 (rope_parameters) and in the one before
// (rope_theta, rope_scaling). Where the two contradict each other it does as transformers 5, and warns.
inline RopeSettings rope_settings(const ModelConfig& config, const RopeKeys& keys = {}) {
    RopeSettings r;
    const std::string group = keys.group.empty() ? detail::rope_group(config) : keys.group;
    detail::refuse_null_positions(config, group, keys);
    const auto nested = config.find(group + "rope_theta"), above = config.find(keys.theta);
    if (nested && above && config.require<double>(keys.theta) != config.require<double>(group + "rope_theta"))
        config.warn(keys.theta + " is " + std::string(*above) + " and " + group + "rope_theta " + std::string(*nested) +
                    ": the latter is read, as transformers 5 does");
    r.theta = config.get<double>(nested ? group + "rope_theta" : keys.theta, keys.theta_if_missing);
    detail::in_range(r.theta, 1.001, 1e12, nested ? group + "rope_theta" : keys.theta);
    auto type = config.find(group + "rope_type");
    if (!type) type = config.find(group + "type");
    if (keys.original_positions && (type == "su" || type == "yarn")) type = "longrope";
    r.scaling = detail::rope_scaling_of(type.value_or("default"));
    r.turned = detail::turned_part(config, group, keys, r.scaling);
    if (r.scaling == RopeScaling::kNone) return r;
    const double positions = config.get<double>("max_position_embeddings", keys.positions_if_missing);
    r.original_positions = keys.original_positions ? detail::in_range(*keys.original_positions, 2, 1e9,
                                                                      "original_max_position_embeddings")
                                                   : detail::original_positions(config, group, positions);
    if (r.scaling == RopeScaling::kLongrope) {
        detail::read_longrope(config, group, positions, r);
        return r;
    }
    if (r.scaling == RopeScaling::kDynamic) {
        r.original_positions = positions; // transformers scales from there on
        detail::read_dynamic(config, group, r);
        return r;
    }
    const bool by_lengths = r.scaling == RopeScaling::kYarn && config.is_null(group + "factor");
    r.factor = by_lengths ? positions / r.original_positions : config.require<double>(group + "factor");
    detail::in_range(r.factor, 1, 1e6, group + "factor");
    if (r.scaling == RopeScaling::kLinear) detail::reach_from(positions, r);
    if (r.scaling == RopeScaling::kYarn) {
        detail::read_yarn(config, group, r);
        detail::reach_from(r.original_positions, r);
    }
    if (r.scaling == RopeScaling::kLlama3) detail::read_llama3(config, group, r);
    return r;
}

// Elements of a head that turn: an even number.
inline uint32_t turned_elements(const RopeSettings& r, uint32_t head_dim) {
    if (!(r.turned > 0 && r.turned <= 1)) throw Error(PB_INVALID, "partial_rotary_factor is out of range");
    const auto turned = static_cast<uint32_t>(head_dim * r.turned);
    if (turned < 2 || turned % 2 != 0)
        throw Error(PB_UNSUPPORTED, "partial_rotary_factor turns " + std::to_string(turned) +
                                        " elements of a head, expected an even number");
    return turned;
}

// Frequencies of the pairs (i, i + rotary / 2), rotary / 2 of them.
inline std::vector<float> rope_frequencies(const RopeSettings& r, uint32_t rotary) {
    if (r.scaling == RopeScaling::kLongrope && r.pair_factor.size() != rotary / 2)
        throw Error(PB_INVALID, "short_factor or long_factor has " + std::to_string(r.pair_factor.size()) +
                                    " values, expected " + std::to_string(rotary / 2));
    const double grown = r.factor * r.length / r.original_positions - (r.factor - 1); // dynamic
    const double theta = r.scaling == RopeScaling::kDynamic && rotary > 2
                             ? r.theta * std::pow(grown, rotary / (rotary - 2.0))
                             : r.theta;
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
        double f = std::pow(theta, -2.0 * i / rotary);
        switch (r.scaling) {
            case RopeScaling::kNone:
            case RopeScaling::kDynamic: break;
            case RopeScaling::kLinear: f /= r.factor; break;
            case RopeScaling::kLongrope: f /= r.pair_factor[i]; break;
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
