// greedy - the most likely allowed token, whatever the request's sampling parameters say.
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class Greedy {
  public:
    explicit Greedy(const patchbay::Context& context) : pool_(context.host()) {}

    void sample(patchbay::SampleBatch& batch) {
        std::vector<uint8_t> faults(batch.size());
        pool_.run(batch.size(), [&](uint32_t i) {
            const auto logits = batch.logits(i);
            int32_t best = patchbay::likeliest(logits, batch.row(i));
            if (best < 0) {
                faults[i] = 1;
                best = patchbay::first_allowed(batch.row(i), logits.size());
            }
            batch.raw.tokens[i] = best;
            patchbay::write_logprobs(batch, i, best);
        });
        for (const uint8_t f : faults) batch.raw.fault_count += f;
    }

  private:
    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::sampler<Greedy>({.name = "greedy", .version = "1.0.0", .summary = "the most likely token, always"}))
