// A healthy proposer, and proposers each wrong in one way, as components of one library.
#include <algorithm>
#include <vector>

#include "patchbay/sdk/draft_model.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace {

using patchbay::ProposeBatch;

struct Again {  // the newest token, as often as there is room
    void propose(ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (const auto tokens = batch.tokens(i); !tokens.empty())
                batch.propose(i, std::vector<int32_t>(batch.raw.max_drafts, tokens.back()));
    }
};

struct FailsOnAnEmptyHistory : Again {
    void propose(ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (batch.tokens(i).size() < 2) throw patchbay::Error(PB_FAILED, "one token is too few to look at");
        Again::propose(batch);
    }
};

struct WritesWhereItMayNot : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (batch.row(i).max_drafts == 0) batch.raw.drafts[size_t{i} * batch.raw.max_drafts] = 1;
    }
};

struct WritesPastItsProbabilities : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        if (batch.wants_probabilities())
            batch.raw.probs[size_t{batch.size()} * batch.raw.max_drafts * batch.raw.vocab_size] = 0;
    }
};

struct NotesADraftTooManyAsDrawn : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        if (batch.wants_probabilities()) batch.raw.drawn[size_t{batch.size()} * batch.raw.max_drafts] = 1;
    }
};

struct TrustsItsOwnSizeof : Again {
    void propose(ProposeBatch& batch) {
        pb_propose_batch own = batch.raw;
        own.row_stride = sizeof(pb_propose_row);
        for (uint32_t i = 0; i < own.row_count; ++i) // until what it reads cannot be
            if (own.rows[i].id == 0) throw patchbay::Error(PB_FAILED, "a row of no sequence");
        ProposeBatch side_by_side(own);
        Again::propose(side_by_side);
    }
};

struct CountsOneTooMany : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; !batch.raw.parents && i < batch.size(); ++i) // a tree of it would be too deep as well
            batch.raw.counts[i] += batch.raw.counts[i] > 0;
    }
};

struct ProposesMinusOne : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (batch.raw.counts[i] > 0) batch.raw.drafts[size_t{i} * batch.raw.max_drafts] = -1;
    }
};

struct FallsSilentAfterAStranger : Again {
    bool lost = false;
    void propose(ProposeBatch& batch) {
        if (lost) throw patchbay::Error(PB_BAD_STATE, "a sequence ended that never began");
        Again::propose(batch);
    }
    void finished(uint64_t id) { lost |= id > 100'000; }
};

struct DraftsForAStranger : Again {
    explicit DraftsForAStranger(const patchbay::Context& context) : model(context, {}) {}
    void propose(ProposeBatch& batch) {
        const pb_runner_row row{424242, nullptr, 0, 0};
        int32_t token = 0;
        if (batch.size() > 0) model.forward({&row, 1}, {&token, 1});
        Again::propose(batch);
    }
    patchbay::DraftModel model;
};

struct DrawsWhatItExcludes : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; batch.wants_probabilities() && i < batch.size(); ++i)
            for (uint32_t k = 0; k < batch.raw.counts[i]; ++k) {
                const auto from = batch.drawn_from(i, k);
                std::fill(from.begin(), from.end(), 1.0f / static_cast<float>(from.size() - 1));
                from[static_cast<size_t>(batch.raw.drafts[size_t{i} * batch.raw.max_drafts + k])] = 0;
            }
    }
};

struct HangsADraftOnItself : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; batch.raw.parents && i < batch.size(); ++i)
            if (batch.raw.counts[i] > 1) batch.raw.parents[size_t{i} * batch.raw.max_drafts + 1] = 1;
    }
};

struct HasMorePathsThanAsked : Again {
    void propose(ProposeBatch& batch) {
        Again::propose(batch);
        for (uint32_t i = 0; batch.raw.parents && i < batch.size(); ++i)
            for (uint32_t k = 0; k < batch.raw.counts[i]; ++k)
                batch.raw.parents[size_t{i} * batch.raw.max_drafts + k] = -1;
    }
};

struct KeepsTheHistory : Again { // and falls silent where that of the batch before is not as it was
    void propose(ProposeBatch& batch) {
        batches += 1;
        const bool stale = batches > 2 && last && *last != first;
        last = nullptr;
        for (uint32_t i = 0; i < batch.size() && !last; ++i)
            if (!batch.tokens(i).empty()) last = batch.row(i).tokens, first = *last;
        if (!stale) Again::propose(batch);
    }
    const int32_t* last = nullptr;
    int32_t first = 0;
    uint32_t batches = 0;
};

template <class T>
constexpr pb_component component(const char* name) {
    return patchbay::proposer<T>({.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Again>("healthy"), component<FailsOnAnEmptyHistory>("fails_on_an_empty_history"),
                component<WritesWhereItMayNot>("writes_where_it_may_not"),
                component<WritesPastItsProbabilities>("writes_past_its_probabilities"),
                component<NotesADraftTooManyAsDrawn>("notes_a_draft_too_many_as_drawn"),
                component<TrustsItsOwnSizeof>("trusts_its_own_sizeof"),
                component<CountsOneTooMany>("counts_one_too_many"), component<ProposesMinusOne>("proposes_minus_one"),
                component<DrawsWhatItExcludes>("draws_what_it_excludes"),
                component<HangsADraftOnItself>("hangs_a_draft_on_itself"),
                component<HasMorePathsThanAsked>("has_more_paths_than_asked"),
                component<FallsSilentAfterAStranger>("falls_silent_after_a_stranger"),
                component<DraftsForAStranger>("drafts_for_a_stranger"),
                component<KeepsTheHistory>("keeps_the_history"))
