#include "engine/request/validation.hpp"

#include <algorithm>

#include "engine/request/parameters.hpp"

#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "engine/request/sampling_params.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kMaxStopIds = 1024, kMaxStops = 64, kMaxStopBytes = 4096, kMaxBytesOfStops = 16384;

Result<> check_stops(const std::vector<std::string>& stops) {
    if (stops.size() > kMaxStops)
        return invalid(std::to_string(stops.size()) + " stop strings, expected at most " + std::to_string(kMaxStops));
    size_t bytes = 0;
    for (const std::string& stop : stops) {
        if (stop.empty() || stop.size() > kMaxStopBytes)
            return invalid("a stop string of " + std::to_string(stop.size()) + " bytes, expected 1 to " +
                           std::to_string(kMaxStopBytes));
        bytes += stop.size();
    }
    if (bytes > kMaxBytesOfStops)
        return invalid("stop strings of " + std::to_string(bytes) + " bytes together, expected at most " +
                       std::to_string(kMaxBytesOfStops));
    return {};
}

template <class T>
Result<> check_range(const char* name, T value, T low, T high) {
    if (value >= low && value <= high) return {}; // also refuses NaN
    return invalid(std::string(name) + " is " + number_text(value) + ", expected " + number_text(low) + " to " +
                   number_text(high));
}

Result<> check_ranges(const SamplingParams& p) {
    for (const SamplingRange& r : kSamplingRanges) PB_CHECK(check_range(r.name, p.*r.field, r.low, r.high));
    for (const auto& [field, info] : rows_of<SamplingParams>()) {
        const auto* const count = std::get_if<uint32_t SamplingParams::*>(&field);
        if (count && info.high && info.only.empty())
            PB_CHECK(check_range(info.name, p.**count, static_cast<uint32_t>(info.low.value_or(0)),
                                 static_cast<uint32_t>(*info.high)));
    }
    return {};
}

}  // namespace

Result<> check_logprobs(const char* name, std::optional<int32_t>& count, const SamplingLimits& limits) {
    if (!count) return {};
    const auto all = static_cast<int32_t>(limits.vocab_size);
    const int32_t limit = limits.max_logprobs < 0 ? all : limits.max_logprobs, wanted = *count == -1 ? all : *count;
    if (wanted < 0 || wanted > limit) {
        const std::string meant = *count == -1 ? " (all " + std::to_string(all) + " tokens of the vocabulary)" : "";
        const bool allowed_elsewhere = wanted > limit && limit < all;
        return invalid(std::string(name) + " is " + std::to_string(*count) + meant + ", expected 0 to " +
                       std::to_string(limit) +
                       (allowed_elsewhere ? ": raise engine.max_logprobs (--max-logprobs; -1: all tokens)" : ""));
    }
    count = wanted;
    return {};
}

Result<> check_sampling(SamplingParams& p, const SamplingLimits& limits) {
    const uint32_t vocab = limits.vocab_size;
    std::ranges::sort(p.dry_breakers);
    PB_CHECK(check_ranges(p));
    PB_CHECK(check_logprobs("logprobs", p.logprobs, limits));
    PB_CHECK(check_logprobs("prompt_logprobs", p.prompt_logprobs, limits));
    if (p.best_of > 0 && p.best_of < p.n)
        return invalid("best_of is " + std::to_string(p.best_of) + ", less than n of " + std::to_string(p.n));
    if (p.beam_width == 0 && sequences_of(p) > 1 && p.temperature == 0)
        return invalid(std::string(p.n > 1 ? "n" : "best_of") + " is " + std::to_string(p.n > 1 ? p.n : p.best_of) +
                       " at temperature 0, where all outputs would be the same");
    if (p.max_tokens == 0) return invalid("max_tokens is 0, expected at least 1");
    if (p.min_tokens > p.max_tokens)
        return invalid("min_tokens is " + std::to_string(p.min_tokens) + ", more than max_tokens of " +
                       std::to_string(p.max_tokens));
    if (p.stop_token_ids.size() > kMaxStopIds)
        return invalid(std::to_string(p.stop_token_ids.size()) + " stop_token_ids, expected at most " +
                       std::to_string(kMaxStopIds));
    PB_CHECK(check_stops(p.stop));
    for (const auto& [token, bias] : p.logit_bias) {
        if (token < 0 || static_cast<uint32_t>(token) >= vocab)
            return invalid("logit_bias for token " + std::to_string(token) + ", expected 0 to " +
                           std::to_string(vocab - 1));
        PB_CHECK(check_range("logit_bias", bias, -1e4f, 1e4f));
    }
    const RepetitionDetection& r = p.repetition_detection;
    PB_CHECK(check_range("repetition_detection.max_pattern_size", r.max_pattern_size, 0u, kMaxPattern));
    PB_CHECK(check_range("repetition_detection.min_pattern_size", r.min_pattern_size, 0u, kMaxPattern));
    PB_CHECK(check_range("repetition_detection.min_count", r.min_count, r.max_pattern_size > 0 ? 2u : 0u, 1'000'000u));
    if (r.max_pattern_size > 0 && r.min_pattern_size > r.max_pattern_size)
        return invalid("repetition_detection.min_pattern_size is " + std::to_string(r.min_pattern_size) +
                       ", more than max_pattern_size of " + std::to_string(r.max_pattern_size));
    if (p.mirostat != 0 && p.mirostat != 2)
        return invalid("mirostat is " + std::to_string(p.mirostat) + ", expected 0 (off) or 2 (its second version)");
    for (const TokenId t : p.dry_breakers)
        if (t < 0 || static_cast<uint32_t>(t) >= vocab)
            return invalid("dry_breakers has token " + std::to_string(t) + ", expected 0 to " +
                           std::to_string(vocab - 1));
    return {};
}

Result<> check_made_up(const SamplingParams& p, TokenText text) {
    const auto unsupported = [](const std::string& what, const std::string& why) {
        return fail(StatusCode::kUnsupported, what + " on a device that computes nothing: " + why);
    };
    const char* const of_logits = p.logprobs            ? "logprobs"
                                  : p.prompt_logprobs   ? "prompt_logprobs"
                                  : p.logits_statistics ? "logits_statistics"
                                                        : nullptr;
    if (of_logits) return unsupported(of_logits, "there are no logits");
    if (p.allowed_token_ids || !p.bad_words.empty())
        return unsupported("allowed_token_ids and bad_words", "its tokens are made up");
    if (text == TokenText::kGiven) return {};
    if (!p.stop.empty()) return unsupported("stop strings", "its text is made up");
    if (p.structured_outputs) return unsupported("structured_outputs", "its text is made up");
    return {};
}

Result<> check_synthetic_acceptance(const SamplingParams& p) {
    if (const char* const name = first_used(p, &ParameterInfo::of_the_model))
        return fail(StatusCode::kUnsupported, std::string(name) +
                    " with rejection_sample_method: synthetic, whose texts are not the model's");
    return {};
}

pb_sampling_params wire_params(const SamplingParams& p, const std::vector<pb_logit_bias>& bias) {
    pb_sampling_params out{};
    out.struct_size = sizeof out;
    copy_numbers(p, out);
    // best_of ranks by cumulative_logprob, which is made of these.
    out.logprobs = p.logprobs ? static_cast<uint32_t>(*p.logprobs) + 1 : p.best_of > p.n;
    out.logit_bias_count = static_cast<uint32_t>(bias.size());
    out.logit_bias = bias.data();
    out.dry_breakers = p.dry_breakers.data();
    out.dry_breaker_count = static_cast<uint32_t>(p.dry_breakers.size());
    out.mirostat_tau = p.mirostat > 0 ? p.mirostat_tau : 0;
    return out;
}

pb_sampling_params params_of_prompt(const SamplingParams& p) {
    pb_sampling_params out = wire_params({.temperature = 0}, {});
    out.logprobs = p.prompt_logprobs ? static_cast<uint32_t>(*p.prompt_logprobs) + 1 : 0;
    return out;
}

}  // namespace patchbay::engine
