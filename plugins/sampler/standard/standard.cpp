// standard - the sampling of OpenAI's, vLLM's and llama.cpp's APIs, in the order that the README gives, then one draw
// by Gumbel-max with noise that is a pure function of (seed, position, token).
#include <atomic>

#include "noise.hpp"
#include "patchbay/sdk/gumbel_max.hpp"
#include "patchbay/sdk/logit_adjustments.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/truncation.hpp"

namespace {

using patchbay::Candidate;
using patchbay::Distances;
using patchbay::each_candidate;

class Standard {
  public:
    explicit Standard(const patchbay::Context& context) : pool_(context.host()) {}

    void sample(patchbay::SampleBatch& batch) {
        each_row(batch.size(), [&](uint32_t i, Memory& m) { sample_row(batch, i, m); });
    }

    void process(patchbay::SampleBatch& batch) {
        each_row(batch.size(), [&](uint32_t i, Memory& m) {
            const auto logits = batch.logits(i);
            const pb_sample_row& row = batch.row(i);
            patchbay::adjust_logits(logits, row);
            std::vector<Candidate> left;
            const Distances all(logits, row);
            if (row.params->temperature > 0 && patchbay::has_rare_stages(*row.params) && !all.empty()) {
                patchbay::keep_by_stages(all, row, m.kept, m.before);
                left = m.kept;
            } else {
                each_candidate(all, *row.params, m.kept, m.before,
                               [&](int32_t token, float x) { left.push_back({token, x}); });
            }
            std::fill(logits.begin(), logits.end(), -INFINITY);
            for (const Candidate& c : left) logits[static_cast<size_t>(c.token)] = c.logit;
            const double norm = patchbay::log_sum_exp(logits);
            for (const Candidate& c : left) logits[static_cast<size_t>(c.token)] = static_cast<float>(c.logit - norm);
        });
    }

  private:
    struct Memory { // of one thread, for any row: up to a few numbers a token of the vocabulary
        std::vector<float> logits;
        std::vector<Candidate> kept, before;
        patchbay::NoiseChunk noise;
    };

    template <class F>
    void each_row(uint32_t rows, F&& f) { // f(row, memory)
        const uint32_t workers = std::min(rows, pool_.threads());
        if (memory_.size() < workers) memory_.resize(workers);
        std::atomic<uint32_t> next = 0;
        pool_.run(workers, [&](uint32_t w) {
            for (uint32_t i = next++; i < rows; i = next++) f(i, memory_[w]);
        });
    }

    void sample_row(patchbay::SampleBatch& batch, uint32_t i, Memory& m) const {
        const pb_sample_row& row = batch.row(i);
        std::span<const float> logits = batch.logits(i);
        if (patchbay::adjusts_logits(*row.params)) { // in a copy: logprobs are those of the raw logits
            m.logits.assign(logits.begin(), logits.end());
            patchbay::adjust_logits(m.logits, row);
            logits = m.logits;
        }
        int32_t token = -1;
        float surprisal = 0;
        if (row.params->temperature == 0) {
            token = patchbay::likeliest(logits, row);
        } else if (const Distances all(logits, row); !all.empty()) {
            patchbay::GumbelMax winner(row.seed, row.position);
            if (patchbay::has_rare_stages(*row.params)) {
                patchbay::keep_by_stages(all, row, m.kept, m.before);
                for (const Candidate& c : m.kept) winner.offer(c.token, c.logit);
                if (row.params->mirostat_tau > 0) surprisal = surprisal_of(winner.token(), m.kept);
            } else if (patchbay::truncates(*row.params)) {
                each_candidate(all, *row.params, m.kept, m.before, [&](int32_t t, float x) { winner.offer(t, x); });
            } else {
                constexpr uint32_t kNone = UINT32_MAX;
                uint32_t chunk = kNone;
                all.each([&](int32_t t, float x) {
                    if (!winner.may_win(x)) return;
                    const uint32_t at = static_cast<uint32_t>(t) / patchbay::kNoiseTokens;
                    if (at != chunk) fill_(m.noise, row.seed, row.position, chunk = at);
                    winner.offer(t, x, m.noise[static_cast<uint32_t>(t) % patchbay::kNoiseTokens]);
                });
            }
            token = winner.token();
        }
        if (token < 0) token = batch.fault(i);
        batch.raw.tokens[i] = token;
        if (batch.raw.surprisal && row.params->mirostat_tau > 0) batch.raw.surprisal[i] = surprisal;
        patchbay::write_logprobs(batch, i, token);
    }

    static float surprisal_of(int32_t token, const std::vector<Candidate>& left) { // bits
        const auto at = std::find_if(left.begin(), left.end(), [&](const Candidate& c) { return c.token == token; });
        if (at == left.end()) return 0;
        return static_cast<float>((patchbay::log_weight(left) - at->logit) / 0.6931471805599453);
    }

    std::vector<Memory> memory_; // by worker
    patchbay::FillNoise fill_ = patchbay::fill_noise();
    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::sampler<Standard>({.name = "standard",
                                 .version = "1.0.0",
                                 .summary = "temperature, top-k, top-p, min-p, penalties, logit bias, logprobs; DRY, "
                                            "top-n-sigma, typical, XTC, mirostat"}))
