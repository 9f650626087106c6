// patchbay/sdk/draft_model.hpp - a model that the host runs for a proposer: loaded in its constructor, asked for the
// next token in propose(). DraftChains is such a proposer, whole. See patchbay.runner/1 in abi/services.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "patchbay/sdk/proposer.hpp"

namespace patchbay {

class DraftModel {
  public:
    // In a proposer's constructor only. `settings`: keys of the section `model:`; the acceptance: −1: not declared.
    // Throws Error where the model cannot be had, or the host offers none.
    DraftModel(const Context& context, const std::vector<pb_setting>& settings, double simulated_acceptance = -1)
        : runner_(service<pb_runner>(context.host(), PB_SERVICE_RUNNER, PB_RUNNER_REVISION)) {
        if (!runner_) throw Error(PB_UNAVAILABLE, "the host runs no models for proposers");
        const pb_runner_load load{sizeof(pb_runner_load), static_cast<uint32_t>(settings.size()), settings.data(),
                                  std::max(simulated_acceptance, 0.0), simulated_acceptance >= 0, 0};
        pb_str why{};
        const pb_status status = runner_->load(runner_->ctx, &load, &facts_, &why);
        if (status != PB_OK) throw Error(status, std::string(view(why)));
    }

    const pb_runner_facts& facts() const { return facts_; }

    // One pass over rows of the propose() under way. tokens[i]: what follows the drafts of rows[i]; −1: nothing more in
    // this step. logprobs: empty, or one a row; probs: empty, or (rows, vocab_size); top ones: empty, or as many for
    // each row. See pb_runner_batch.
    void forward(std::span<const pb_runner_row> rows, std::span<int32_t> tokens, std::span<float> logprobs = {},
                 std::span<float> probs = {}, std::span<int32_t> top_tokens = {},
                 std::span<float> top_logprobs = {}) const {
        pb_runner_batch batch{};
        batch.struct_size = sizeof batch;
        batch.model = facts_.model;
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.row_stride = sizeof(pb_runner_row);
        batch.rows = rows.data();
        batch.tokens = tokens.data();
        batch.logprobs = logprobs.empty() ? nullptr : logprobs.data();
        batch.probs = probs.empty() ? nullptr : probs.data();
        if (!top_tokens.empty()) {
            batch.top_count = static_cast<uint32_t>(top_tokens.size() / rows.size());
            batch.top_tokens = top_tokens.data();
            batch.top_logprobs = top_logprobs.data();
        }
        forward(batch);
    }
    void forward(pb_runner_batch& batch) const { // all that the host can be asked
        pb_str why{};
        const pb_status status = runner_->forward(runner_->ctx, &batch, &why);
        if (status != PB_OK) throw Error(status, std::string(view(why)));
    }

  private:
    const std::optional<pb_runner> runner_;
    pb_runner_facts facts_ = patchbay::sized<pb_runner_facts>();
};

namespace detail {

// Drafts below `min` are not made: those that are, were drawn from the others. False: this one is none.
inline bool restrict_to_probable(std::span<float> from, int32_t token, float min) {
    if (min <= 0) return true;
    if (from[static_cast<size_t>(token)] < min) return false;
    double left = 0;
    for (float& p : from) {
        if (p < min) p = 0;
        left += p;
    }
    for (float& p : from) p = static_cast<float>(p / left);
    return true;
}

}  // namespace detail

// What a model found beside the tokens of a chain, nearly as likely: where branches of a tree leave it.
class DraftBranches {
  public:
    void clear() {
        others_.clear();
        likely_ = 0;
    }

    // The chain goes on with `token`. others: the likeliest tokens there, it may be one of them; −1: none.
    void note(size_t place, int32_t token, float logprob, std::span<const int32_t> others,
              std::span<const float> logprobs, float min_probability) {
        for (size_t k = 0; k < others.size(); ++k)
            if (others[k] >= 0 && others[k] != token && std::exp(logprobs[k]) >= min_probability)
                others_.push_back({likely_ + logprobs[k], place, others[k]});
        likely_ += logprob;
    }

    // Calls f(path) for each, the likeliest first: the chain as far as the place, and the other token. keeps_rest: and
    // then what the chain goes on with, since no guess knows of the one before it.
    template <class F>
    void each_path(const std::vector<int32_t>& chain, bool keeps_rest, F&& f) {
        std::ranges::stable_sort(others_, [](const Other& a, const Other& b) { return a.logprob > b.logprob; });
        for (const Other& other : others_) {
            std::vector<int32_t> path = chain;
            if (!keeps_rest || other.place >= path.size()) path.resize(other.place + 1);
            path[other.place] = other.token;
            f(path);
        }
    }

  private:
    struct Other {     // than the chain's token
        float logprob; // of the path up to it
        size_t place;
        int32_t token;
    };
    std::vector<Other> others_;
    float likely_ = 0; // log-probability of the chain
};

// Chains of what a model finds, token by token, for all sequences at once; where the host verifies trees, with branches
// to what it found nearly as likely. Every proposer that drafts so has the keys
// model(), kDtype, kQuantization, kLoadFormat, kMinProbability, kSimulatedAcceptance.
class DraftChains {
    static constexpr const char* kDtypes[] = {"auto", "float32", "bfloat16", nullptr};
    static constexpr const char* kQuantizations[] = {"auto", "none", "int8", "int4", nullptr};
    static constexpr const char* kFormats[] = {"auto", "dummy", nullptr};

  public:
    static constexpr pb_param model(const char* description) {
        return {"model", PB_PARAM_STRING, 0, nullptr, 0, 0, nullptr, "path", description};
    }
    static constexpr pb_param kDtype = param::choice("dtype", "auto", kDtypes, "as model.dtype, of its weights"),
                              kQuantization = param::choice("quantization", "auto", kQuantizations,
                                                            "as model.quantization, of its linears"),
                              kLoadFormat = param::choice("load_format", "auto", kFormats, "as model.load_format");
    static constexpr pb_param kMinProbability =
        param::real("min_probability", "0", 0, 1, nullptr,
                    "a draft that the draft model finds less probable ends the chain before it");
    static constexpr pb_param kSimulatedAcceptance =
        param::real("simulated_acceptance", "-1", -1, 1, nullptr,
                    "where the device computes nothing: probability that a draft is accepted once those before it "
                    "are; -1: not declared, which is refused there");

    // plugin: the model plugin, where config.json does not say; empty: it does.
    explicit DraftChains(const Context& context, const char* plugin = "")
        : min_probability_(context.get<float>("min_probability")), model_(load(context, plugin)) {
        if (min_probability_ > 0 && !model_.facts().computes)
            throw Error(PB_UNSUPPORTED,
                        "min_probability where the device computes nothing: there are no probabilities");
    }

    const pb_runner_facts& facts() const { return model_.facts(); }

    // Returns how many chains ended because a draft was not probable enough.
    uint32_t propose(ProposeBatch& batch) {
        chains_.resize(batch.size());
        branches_.resize(batch.size());
        going_.clear();
        for (uint32_t i = 0; i < batch.size(); ++i) {
            chains_[i].clear();
            branches_[i].clear();
            if (max_drafts_of(batch, i) > 0) going_.push_back(i);
        }
        uint32_t doubts = 0;
        while (!going_.empty()) doubts += extend(batch);
        for (uint32_t i = 0; i < batch.size(); ++i) {
            if (!chains_[i].empty()) batch.propose(i, chains_[i]);
            branches_[i].each_path(chains_[i], facts().layer_count == 0,
                                   [&](const std::vector<int32_t>& path) { batch.add_path(i, path); });
        }
        return doubts;
    }

  private:
    static DraftModel load(const Context& context, const char* plugin) {
        const std::string path = context.get<std::string>("model");
        std::vector<std::pair<const char*, std::string>> values = {{"plugin", plugin}};
        for (const char* key : {"dtype", "quantization", "load_format"})
            if (std::string value = context.get<std::string>(key); value != "auto") values.emplace_back(key, value);
        std::vector<pb_setting> settings = {{str("path"), str(path)}};
        for (const auto& [key, value] : values)
            if (!value.empty()) settings.push_back({str(key), str(value)});
        return DraftModel(context, settings, context.get<double>("simulated_acceptance"));
    }

    uint32_t max_drafts_of(const ProposeBatch& batch, uint32_t i) const {
        const uint32_t ahead = facts().max_draft_depth ? facts().max_draft_depth : std::numeric_limits<uint32_t>::max();
        return std::min(batch.row(i).max_drafts, ahead);
    }

    // One pass: a draft more for each row that goes on.
    uint32_t extend(ProposeBatch& batch) {
        rows_.clear();
        for (const uint32_t i : going_)
            rows_.push_back({batch.row(i).id, chains_[i].data(), static_cast<uint32_t>(chains_[i].size()), 0});
        tokens_.assign(rows_.size(), -1);
        const bool drawn = batch.wants_probabilities();
        const size_t vocab = facts().vocab_size;
        uint32_t paths = 1;
        for (const uint32_t i : going_) paths = std::max(paths, batch.max_paths(i));
        const uint32_t top = paths > 1 && !drawn ? paths : 0;
        logprobs_.assign(min_probability_ > 0 || top > 0 ? rows_.size() : 0, 0);
        probs_.resize(drawn ? rows_.size() * vocab : 0);
        top_tokens_.assign(rows_.size() * top, -1);
        top_logprobs_.assign(rows_.size() * top, 0);
        model_.forward(rows_, tokens_, logprobs_, probs_, top_tokens_, top_logprobs_);
        size_t kept = 0;
        uint32_t doubts = 0;
        for (size_t r = 0; r < going_.size(); ++r) {
            const uint32_t i = going_[r];
            if (tokens_[r] < 0) continue;
            if (top > 0)
                branches_[i].note(chains_[i].size(), tokens_[r], logprobs_[r],
                                  std::span(top_tokens_).subspan(r * top, top),
                                  std::span(top_logprobs_).subspan(r * top, top), min_probability_);
            const std::span<float> from = std::span(probs_).subspan(drawn ? r * vocab : 0, drawn ? vocab : 0);
            // At temperature 0 the one token has all of the probability that it is drawn with, whatever the model's is.
            const bool drawn_by_chance = drawn && from[static_cast<size_t>(tokens_[r])] < 1;
            const bool doubted = drawn_by_chance ? !detail::restrict_to_probable(from, tokens_[r], min_probability_)
                                                 : !logprobs_.empty() && std::exp(logprobs_[r]) < min_probability_;
            if (doubted) {
                doubts += 1;
                continue;
            }
            if (drawn) std::ranges::copy(from, batch.drawn_from(i, static_cast<uint32_t>(chains_[i].size())).begin());
            chains_[i].push_back(tokens_[r]);
            if (chains_[i].size() < max_drafts_of(batch, i)) going_[kept++] = i;
        }
        going_.resize(kept);
        return doubts;
    }

    float min_probability_;
    DraftModel model_;
    std::vector<std::vector<int32_t>> chains_; // by row of the batch
    std::vector<DraftBranches> branches_;      // likewise
    std::vector<uint32_t> going_;              // rows that may get another draft
    std::vector<pb_runner_row> rows_;
    std::vector<int32_t> tokens_, top_tokens_;
    std::vector<float> logprobs_, probs_, top_logprobs_; // probs: (rows, vocab)
};

}  // namespace patchbay
