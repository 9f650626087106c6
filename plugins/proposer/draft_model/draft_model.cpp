// A model that the host runs drafts token by token, for all sequences at once. One proposer with three names, one for
// each kind of model: a smaller one with the same vocabulary, EAGLE's head, Medusa's heads.
#include "patchbay/sdk/draft_model.hpp"

namespace {

using patchbay::DraftChains;

struct SmallerModel {
    static constexpr const char* kModelPlugin = ""; // config.json names its architecture
    static constexpr const char* kEarlyStops = "draft_model_early_stops";
    static constexpr const char* kModel = "the draft model, of the same vocabulary: a Hugging Face folder, a GGUF "
                                          "file, or a YAML file with a section model";
};

struct Eagle {
    static constexpr const char* kModelPlugin = "eagle";
    static constexpr const char* kEarlyStops = "eagle_early_stops";
    static constexpr const char* kModel = "the head, trained for the target: a folder with config.json and "
                                          "safetensors, with the names of EAGLE's checkpoints";
};

struct Medusa {
    static constexpr const char* kModelPlugin = "medusa";
    static constexpr const char* kEarlyStops = "medusa_early_stops";
    static constexpr const char* kModel = "the heads, trained for the target: a folder with config.json and "
                                          "safetensors, with the names of Medusa's checkpoints";
};

template <class Drafter>
class DraftModelProposer {
  public:
    static constexpr pb_param kParams[] = {
        DraftChains::model(Drafter::kModel), DraftChains::kDtype,          DraftChains::kQuantization,
        DraftChains::kLoadFormat,            DraftChains::kMinProbability, DraftChains::kSimulatedAcceptance};

    explicit DraftModelProposer(const patchbay::Context& context)
        : chains_(context, Drafter::kModelPlugin), metrics_(context.host()) {}

    void propose(patchbay::ProposeBatch& batch) {
        if (const uint32_t stops = chains_.propose(batch)) metrics_.add(Drafter::kEarlyStops, stops);
    }

  private:
    DraftChains chains_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::proposer<DraftModelProposer<SmallerModel>>(
        {.name = "draft_model", .version = "1.0.0", .summary = "a smaller model of the same vocabulary drafts ahead"}),
    patchbay::proposer<DraftModelProposer<Eagle>>(
        {.name = "eagle", .version = "1.0.0", .summary = "a head on the target's hidden states drafts ahead (EAGLE)"}),
    patchbay::proposer<DraftModelProposer<Medusa>>(
        {.name = "medusa", .version = "1.0.0", .summary = "heads on the target's hidden states draft ahead (Medusa)"}))
