// draft_model - a smaller model guesses what the large one will say, token by token, for all sequences at once.
#include "patchbay/sdk/draft_model.hpp"

namespace {

using patchbay::DraftChains;

class DraftModelProposer {
  public:
    static constexpr pb_param kParams[] = {
        DraftChains::model("the draft model, of the same vocabulary: a Hugging Face folder, a GGUF file, or a YAML "
                           "file with a section model"),
        DraftChains::kDtype,          DraftChains::kQuantization,       DraftChains::kLoadFormat,
        DraftChains::kMinProbability, DraftChains::kSimulatedAcceptance};

    explicit DraftModelProposer(const patchbay::Context& context) : chains_(context), metrics_(context.host()) {}

    void propose(patchbay::ProposeBatch& batch) {
        if (const uint32_t doubts = chains_.propose(batch)) metrics_.add("draft_model_doubts", doubts);
    }

  private:
    DraftChains chains_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<DraftModelProposer>(
    {.name = "draft_model", .version = "1.0.0", .summary = "a smaller model of the same vocabulary drafts ahead"}))
