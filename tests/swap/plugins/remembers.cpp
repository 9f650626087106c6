// Samplers with state, which takes the likeliest token all the same: what a swap must not lose.
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class Remembers {
  public:
    explicit Remembers(const patchbay::Context& context) : metrics_(context.host()) {}

    void sample(patchbay::SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            int32_t best = patchbay::likeliest(batch.logits(i), batch.row(i));
            if (best < 0) best = batch.fault(i);
            patchbay::write_logprobs(batch, i, best);
            batch.raw.tokens[i] = best;
        }
        rows_ += batch.size();
        metrics_.set("rows", static_cast<double>(rows_));
    }
    void save(patchbay::Writer& w) const { w.put("rows", rows_); }
    void load(const patchbay::Reader& r) { r.get("rows", rows_); }

  private:
    patchbay::Metrics metrics_;
    uint64_t rows_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<Remembers>(
    {.name = "remembers", .version = "1.0.0", .summary = "for tests", .state = "remembers/1"}))
