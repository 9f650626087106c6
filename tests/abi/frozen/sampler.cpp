// frozen - draws among the tokens that are at least so likely, compared with the likeliest one (min-p), after logit
// biases. It uses all that a host sampler of the contract has: both calls, what it does not accept, masks, faults,
// log-probabilities.
#include "patchbay/sdk/gumbel_max.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class Frozen {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("floor", "0.02", 0, 1, nullptr, "probability, relative to the likeliest token's, below "
                                                              "which a token is not drawn")};

    explicit Frozen(const patchbay::Context& context)
        : log_floor_(std::log(context.get<double>("floor"))), pool_(context.host()) {}

    void accepts(const pb_sampling_params& p) const {
        if (p.mirostat_tau > 0) throw patchbay::Error(PB_UNSUPPORTED, "mirostat_tau");
    }
    void sample(patchbay::SampleBatch& batch) {
        pool_.run(batch.size(), [&](uint32_t i) {
            int32_t token = draw(biased(batch, i), batch.row(i));
            if (token < 0) token = batch.fault(i);
            batch.raw.tokens[i] = token;
            patchbay::write_logprobs(batch, i, token);
        });
    }
    void process(patchbay::SampleBatch& batch) {
        pool_.run(batch.size(), [&](uint32_t i) {
            const pb_sample_row& row = batch.row(i);
            const std::vector<float> logits = biased(batch, i);
            const std::span<float> out = batch.logits(i);
            const double least = floor_of(logits, row), temperature = row.params->temperature;
            const auto best = static_cast<size_t>(patchbay::likeliest(logits, row));
            for (size_t t = 0; t < out.size(); ++t) {
                const bool stays = temperature > 0 ? logits[t] >= least && patchbay::allowed(row, t) : t == best;
                out[t] = stays ? static_cast<float>(logits[t] / std::max(temperature, 1e-3)) : -INFINITY;
            }
            const double norm = patchbay::log_sum_exp(out);
            for (float& x : out) x = static_cast<float>(x - norm);
        });
    }

  private:
    static std::vector<float> biased(const patchbay::SampleBatch& batch, uint32_t i) {
        const pb_sampling_params& p = *batch.row(i).params;
        std::vector<float> out(batch.logits(i).begin(), batch.logits(i).end());
        for (uint32_t k = 0; k < p.logit_bias_count; ++k)
            if (const auto t = static_cast<size_t>(p.logit_bias[k].token); t < out.size())
                out[t] += p.logit_bias[k].bias;
        return out;
    }
    double floor_of(std::span<const float> logits, const pb_sample_row& row) const {
        const int32_t best = patchbay::likeliest(logits, row);
        return best < 0 ? 0 : logits[static_cast<size_t>(best)] + log_floor_ * row.params->temperature;
    }
    int32_t draw(const std::vector<float>& logits, const pb_sample_row& row) const {
        const int32_t best = patchbay::likeliest(logits, row);
        if (best < 0 || row.params->temperature <= 0) return best;
        const double least = floor_of(logits, row);
        patchbay::GumbelMax chosen(row.seed, row.position);
        for (size_t t = 0; t < logits.size(); ++t)
            if (logits[t] >= least && patchbay::allowed(row, t))
                chosen.offer(static_cast<int32_t>(t), logits[t] / row.params->temperature);
        return chosen.token();
    }

    double log_floor_;
    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<Frozen>(
    {.name = "frozen", .version = "1.0.0", .summary = "draws among the tokens above a relative floor"}))
