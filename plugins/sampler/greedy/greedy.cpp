// greedy - the most likely allowed token, whatever the request's sampling parameters say.
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class Greedy {
  public:
    explicit Greedy(const patchbay::Context& context) : pool_(context.host()) {}

    void sample(patchbay::SampleBatch& batch) {
        pool_.run(batch.size(), [&](uint32_t i) {
            int32_t best = patchbay::likeliest(batch.logits(i), batch.row(i));
            if (best < 0) best = batch.fault(i);
            batch.raw.tokens[i] = best;
            patchbay::write_logprobs(batch, i, best);
        });
    }

  private:
    patchbay::Pool pool_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::sampler<Greedy>({.name = "greedy", .version = "1.0.0", .summary = "the most likely token, always"}))
