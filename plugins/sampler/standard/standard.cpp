// standard - the sampling of OpenAI's and vLLM's APIs. Order: mask, logit bias, penalties, temperature, top-k, top-p,
// min-p, then one draw by Gumbel-max with noise that is a pure function of (seed, position, token).
#include <unordered_map>

#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

struct Candidate {
    int32_t token;
    float logit;
};

bool likelier(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void penalise(std::span<float> logits, const pb_sample_row& row) {
    const pb_sampling_params& p = *row.params;
    for (uint32_t i = 0; i < p.logit_bias_count; ++i)
        if (const auto t = static_cast<size_t>(p.logit_bias[i].token); t < logits.size())
            logits[t] += p.logit_bias[i].bias;
    if (p.repetition_penalty == 1 && p.presence_penalty == 0 && p.frequency_penalty == 0) return;
    std::unordered_map<int32_t, uint32_t> counts; // of output tokens; prompt tokens appear with 0
    for (uint32_t i = 0; i < row.prompt_count; ++i) counts.emplace(row.prompt[i], 0);
    for (uint32_t i = 0; i < row.output_count; ++i) counts[row.output[i]] += 1;
    for (const auto& [token, count] : counts) {
        float& x = logits[static_cast<size_t>(token)];
        x = x > 0 ? x / p.repetition_penalty : x * p.repetition_penalty;
        if (count > 0) x -= p.presence_penalty + p.frequency_penalty * static_cast<float>(count);
    }
}

// What truncation leaves, as distances from the highest over the temperature, so that no temperature is too low: what
// is below the highest goes to -infinity, and the highest stays 0. Empty: no finite logit is allowed.
std::vector<Candidate> candidates(std::span<const float> logits, const pb_sample_row& row) {
    const pb_sampling_params& p = *row.params;
    std::vector<Candidate> left;
    left.reserve(logits.size());
    float most = -INFINITY;
    for (size_t t = 0; t < logits.size(); ++t)
        if (patchbay::allowed(row, t) && logits[t] > -INFINITY) {
            left.push_back({static_cast<int32_t>(t), logits[t]});
            most = std::max(most, logits[t]);
        }
    if (left.empty()) return left;
    const float temperature = p.temperature > 0 ? p.temperature : 1;
    for (Candidate& c : left) c.logit = c.logit == most ? 0 : (c.logit - most) / temperature;
    if (p.top_k > 0 && static_cast<size_t>(p.top_k) < left.size()) {
        std::nth_element(left.begin(), left.begin() + p.top_k - 1, left.end(), likelier);
        left.resize(static_cast<size_t>(p.top_k));
    }
    const auto weight = [](const Candidate& c) { return std::exp(static_cast<double>(c.logit)); }; // 1 of the likeliest
    if (p.top_p < 1) { // the fewest most likely that reach top_p: sorted only as far as needed
        std::sort(left.begin(), left.end(),
                  [](auto& a, auto& b) { return a.token < b.token; });  // one order for the sum
        double total = 0;
        for (const Candidate& c : left) total += weight(c);
        double sum = 0;
        size_t kept = 0, sorted = 0;
        while (kept < left.size() && sum < p.top_p * total) {
            if (kept == sorted) {
                sorted = std::min(left.size(), std::max<size_t>(64, sorted * 4));
                std::partial_sort(left.begin() + static_cast<ptrdiff_t>(kept),
                                  left.begin() + static_cast<ptrdiff_t>(sorted), left.end(), likelier);
            }
            sum += weight(left[kept++]);
        }
        left.resize(std::max<size_t>(kept, 1));
    }
    if (p.min_p > 0) std::erase_if(left, [&](const Candidate& c) { return weight(c) < p.min_p; });
    return left;
}

class Standard {
  public:
    explicit Standard(const patchbay::Context& context) : pool_(context.host()) {}

    void sample(patchbay::SampleBatch& batch) {
        std::vector<uint8_t> faults(batch.size());
        pool_.run(batch.size(), [&](uint32_t i) { faults[i] = sample_row(batch, i); });
        for (const uint8_t f : faults) batch.raw.fault_count += f;
    }

    void process(patchbay::SampleBatch& batch) {
        pool_.run(batch.size(), [&](uint32_t i) {
            const auto logits = batch.logits(i);
            penalise(logits, batch.row(i));
            const auto left = candidates(logits, batch.row(i));
            std::fill(logits.begin(), logits.end(), -INFINITY);
            for (const Candidate& c : left) logits[static_cast<size_t>(c.token)] = c.logit;
            const double norm = patchbay::log_sum_exp(logits);
            for (const Candidate& c : left) logits[static_cast<size_t>(c.token)] = static_cast<float>(c.logit - norm);
        });
    }

  private:
    static uint8_t sample_row(patchbay::SampleBatch& batch, uint32_t i) {
        const pb_sample_row& row = batch.row(i);
        const auto raw = batch.logits(i);
        std::vector<float> logits(raw.begin(), raw.end()); // logprobs are of the raw ones
        penalise(logits, row);
        int32_t token = -1;
        uint8_t fault = 0;
        if (row.params->temperature == 0) {
            Candidate best{-1, -INFINITY};
            for (size_t t = 0; t < logits.size(); ++t)
                if (patchbay::allowed(row, t) && logits[t] > best.logit) best = {static_cast<int32_t>(t), logits[t]};
            token = best.token;
        } else {
            double best = -INFINITY;
            for (const Candidate& c : candidates(logits, row)) {
                const double x = c.logit + patchbay::gumbel(row.seed, row.position, static_cast<uint32_t>(c.token));
                if (x > best || (x == best && c.token < token)) best = x, token = c.token;
            }
        }
        if (token < 0) {
            token = patchbay::first_allowed(row, logits.size());
            fault = 1;
        }
        batch.raw.tokens[i] = token;
        patchbay::write_logprobs(batch, i, token);
        return fault;
    }

    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::sampler<Standard>({.name = "standard",
                                 .version = "1.0.0",
                                 .summary = "temperature, top-k, top-p, min-p, penalties, logit bias, logprobs"}))
