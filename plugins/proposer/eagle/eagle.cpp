// eagle - a head that was trained on the target's hidden states drafts token by token from them, for all sequences.
#include "patchbay/sdk/draft_model.hpp"

namespace {

using patchbay::DraftChains;

class Eagle {
  public:
    static constexpr pb_param kParams[] = {
        DraftChains::model("the head, trained for the target: a folder with config.json and safetensors, with the "
                           "names of EAGLE's checkpoints"),
        DraftChains::kDtype,          DraftChains::kQuantization,       DraftChains::kLoadFormat,
        DraftChains::kMinProbability, DraftChains::kSimulatedAcceptance};

    explicit Eagle(const patchbay::Context& context) : chains_(context, "eagle"), metrics_(context.host()) {}

    void propose(patchbay::ProposeBatch& batch) {
        if (const uint32_t doubts = chains_.propose(batch)) metrics_.add("eagle_doubts", doubts);
    }

  private:
    DraftChains chains_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Eagle>(
    {.name = "eagle", .version = "1.0.0", .summary = "a head on the target's hidden states drafts ahead (EAGLE)"}))
