// @name@ - a sampler: draws among the tokens that are at least so likely, compared with the likeliest one (min-p).
#include "patchbay/sdk/gumbel_max.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("floor", "0.05", 0, 1, nullptr, "probability, relative to the likeliest token's, below "
                                                              "which a token is not drawn"),
    };

    explicit @Class@(const patchbay::Context& context)
        : log_floor_(std::log(context.get<double>("floor"))), pool_(context.host()) {}

    // Logits of a row are (vocab) f32. A token depends on its own row alone, never on the rows beside it.
    void sample(patchbay::SampleBatch& batch) {
        pool_.run(batch.size(), [&](uint32_t i) {
            int32_t token = draw(batch.logits(i), batch.row(i));
            if (token < 0) token = batch.fault(i); // all NaN, or all excluded: counted, and it gets an allowed token
            batch.raw.tokens[i] = token;
            patchbay::write_logprobs(batch, i, token);
        });
    }

  private:
    int32_t draw(std::span<const float> logits, const pb_sample_row& row) const {
        const int32_t best = patchbay::likeliest(logits, row);
        const float temperature = row.params->temperature;
        if (best < 0 || temperature <= 0) return best;
        const double least = logits[static_cast<size_t>(best)] + log_floor_ * temperature;
        patchbay::GumbelMax chosen(row.seed, row.position); // the request's own noise
        for (size_t t = 0; t < logits.size(); ++t)
            if (logits[t] >= least && patchbay::allowed(row, t))
                chosen.offer(static_cast<int32_t>(t), logits[t] / temperature);
        return chosen.token();
    }

    double log_floor_; // -infinity: every token is drawn
    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "draws among the tokens above a relative floor"}))
