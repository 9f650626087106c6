// kept_sdk - proposes the newest token twice, over the SDK; with state.
#include "grown.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace {

class Kept {
  public:
    void propose(patchbay::ProposeBatch& batch) {
        kept::expect_zero_growth(batch.raw, "pb_propose_batch");
        for (uint32_t i = 0; i < batch.size(); ++i) {
            kept::expect_zero_growth(batch.row(i), "pb_propose_row");
            if (batch.tokens(i).empty()) continue;
            const int32_t chain[2] = {batch.tokens(i).back(), batch.tokens(i).back()};
            batch.propose(i, chain);
        }
        batches_ += 1;
    }
    void observe(uint64_t, uint32_t, uint32_t accepted) { accepted_ += accepted; }
    void save(patchbay::Writer& writer) const {
        writer.put("batches", batches_);
        writer.put("accepted", accepted_);
    }
    void load(const patchbay::Reader& reader) {
        reader.get("batches", batches_);
        reader.get("accepted", accepted_);
    }

  private:
    uint64_t batches_ = 0, accepted_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Kept>(
    {.name = "kept_sdk", .version = "1.0.0", .summary = "repeats the newest token", .state = "kept_sdk/1"}))
