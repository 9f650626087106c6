// medusa - heads on the hidden state that the newest token came from each guess one of the tokens behind it.
#include "patchbay/sdk/draft_model.hpp"

namespace {

using patchbay::DraftChains;

class Medusa {
  public:
    static constexpr pb_param kParams[] = {
        DraftChains::model("the heads, trained for the target: a folder with config.json and safetensors, with the "
                           "names of Medusa's checkpoints"),
        DraftChains::kDtype,          DraftChains::kQuantization,       DraftChains::kLoadFormat,
        DraftChains::kMinProbability, DraftChains::kSimulatedAcceptance};

    explicit Medusa(const patchbay::Context& context) : chains_(context, "medusa"), metrics_(context.host()) {}

    void propose(patchbay::ProposeBatch& batch) {
        if (const uint32_t doubts = chains_.propose(batch)) metrics_.add("medusa_doubts", doubts);
    }

  private:
    DraftChains chains_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<Medusa>(
    {.name = "medusa", .version = "1.0.0", .summary = "heads on the target's hidden states draft ahead (Medusa)"}))
