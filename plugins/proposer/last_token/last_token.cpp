// last_token - drafts the newest token again and again, as often as the engine takes, at no cost.
#include <vector>

#include "patchbay/sdk/proposer.hpp"

namespace {

class LastToken {
  public:
    explicit LastToken(const patchbay::Context&) {}

    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (const auto tokens = batch.tokens(i); !tokens.empty())
                batch.propose(i, std::vector<int32_t>(batch.row(i).max_drafts, tokens.back()));
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<LastToken>(
    {.name = "last_token", .version = "1.0.0", .summary = "the newest token again, for given acceptance rates"}))
