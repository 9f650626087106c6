// draft_model - a smaller model guesses what the large one will say, token by token, for all sequences at once.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "patchbay/sdk/draft_model.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace {

constexpr const char* kDtypes[] = {"auto", "float32", "bfloat16", nullptr};
constexpr const char* kQuantizations[] = {"auto", "none", "int8", "int4", nullptr};
constexpr const char* kFormats[] = {"auto", "dummy", nullptr};
constexpr const char* kModelKeys[] = {"dtype", "quantization", "load_format"}; // as in the section model:

class DraftModelProposer {
  public:
    static constexpr pb_param kParams[] = {
        {"model", PB_PARAM_STRING, 0, nullptr, 0, 0, nullptr, "path",
         "the draft model, of the same vocabulary: a Hugging Face folder, a GGUF file, or a YAML file with a section "
         "model"},
        patchbay::param::choice("dtype", "auto", kDtypes, "as model.dtype, of its weights"),
        patchbay::param::choice("quantization", "auto", kQuantizations, "as model.quantization, of its linears"),
        patchbay::param::choice("load_format", "auto", kFormats, "as model.load_format"),
        patchbay::param::real("min_probability", "0", 0, 1, nullptr,
                              "a draft that the draft model finds less probable ends the chain before it"),
        patchbay::param::real("simulated_acceptance", "-1", -1, 1, nullptr,
                              "where the device computes nothing: probability that a draft is accepted once those "
                              "before it are; -1: not told, and refused there")};

    explicit DraftModelProposer(const patchbay::Context& context)
        : min_probability_(context.get<float>("min_probability")), model_(load(context)), metrics_(context.host()) {
        if (min_probability_ > 0 && !model_.facts().computes)
            throw patchbay::Error(PB_UNSUPPORTED,
                                  "min_probability where the device computes nothing: there are no probabilities");
    }

    void propose(patchbay::ProposeBatch& batch) {
        chains_.resize(batch.size());
        going_.clear();
        for (uint32_t i = 0; i < batch.size(); ++i) {
            chains_[i].clear();
            if (batch.row(i).max_drafts > 0 && !batch.tokens(i).empty()) going_.push_back(i);
        }
        while (!going_.empty()) extend(batch);
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (!chains_[i].empty()) batch.propose(i, chains_[i]);
    }

  private:
    static patchbay::DraftModel load(const patchbay::Context& context) {
        std::vector<std::string> values = {context.get<std::string>("model")};
        for (const char* key : kModelKeys) values.push_back(context.get<std::string>(key));
        std::vector<pb_setting> settings = {{patchbay::str("path"), patchbay::str(values[0])}};
        for (size_t i = 1; i < values.size(); ++i)
            if (values[i] != "auto") settings.push_back({patchbay::str(kModelKeys[i - 1]), patchbay::str(values[i])});
        return patchbay::DraftModel(context, settings, context.get<double>("simulated_acceptance"));
    }

    // One pass: a draft more for each row that goes on.
    void extend(patchbay::ProposeBatch& batch) {
        rows_.clear();
        for (const uint32_t i : going_)
            rows_.push_back({batch.row(i).id, chains_[i].data(), static_cast<uint32_t>(chains_[i].size()), 0});
        tokens_.assign(rows_.size(), -1);
        const bool drawn = batch.wants_probabilities();
        const size_t vocab = model_.facts().vocab_size;
        logprobs_.assign(min_probability_ > 0 && !drawn ? rows_.size() : 0, 0);
        probs_.resize(drawn ? rows_.size() * vocab : 0);
        model_.forward(rows_, tokens_, logprobs_, probs_);
        size_t kept = 0;
        for (size_t r = 0; r < going_.size(); ++r) {
            const uint32_t i = going_[r];
            if (tokens_[r] < 0) continue;
            const std::span<float> from = std::span(probs_).subspan(drawn ? r * vocab : 0, drawn ? vocab : 0);
            const bool doubted = drawn ? !restrict_to_probable(from, tokens_[r])
                                       : !logprobs_.empty() && std::exp(logprobs_[r]) < min_probability_;
            if (doubted) {
                metrics_.add("draft_model_doubts");
                continue;
            }
            if (drawn) std::ranges::copy(from, batch.drawn_from(i, static_cast<uint32_t>(chains_[i].size())).begin());
            chains_[i].push_back(tokens_[r]);
            if (chains_[i].size() < batch.row(i).max_drafts) going_[kept++] = i;
        }
        going_.resize(kept);
    }

    // Drafts below min_probability are not made: those that are, were drawn from the others. False: this one is none.
    bool restrict_to_probable(std::span<float> from, int32_t token) const {
        if (min_probability_ <= 0) return true;
        if (from[static_cast<size_t>(token)] < min_probability_) return false;
        double left = 0;
        for (float& p : from) {
            if (p < min_probability_) p = 0;
            left += p;
        }
        for (float& p : from) p = static_cast<float>(p / left);
        return true;
    }

    float min_probability_;
    patchbay::DraftModel model_;
    patchbay::Metrics metrics_;
    std::vector<std::vector<int32_t>> chains_; // by row of the batch
    std::vector<uint32_t> going_;              // rows that may get another draft
    std::vector<pb_runner_row> rows_;
    std::vector<int32_t> tokens_;
    std::vector<float> logprobs_, probs_; // probs: (rows, vocab)
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<DraftModelProposer>(
    {.name = "draft_model", .version = "1.0.0", .summary = "a smaller model of the same vocabulary drafts ahead"}))
