// patchbay/sdk/proposer.hpp - a proposer as a class: void propose(patchbay::ProposeBatch&).
// Optional: observe(id, proposed, accepted), finished(id).
#pragma once
#include <algorithm>
#include <optional>
#include <span>

#include "patchbay/abi/proposer.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

struct ProposeBatch {
    explicit ProposeBatch(pb_propose_batch& batch) : raw(batch), rows(batch.rows, batch.row_count, batch.row_stride) {}
    uint32_t size() const { return raw.row_count; }
    const pb_propose_row& row(uint32_t i) const { return rows[i]; }
    std::span<const int32_t> tokens(uint32_t i) const { return {row(i).tokens, row(i).token_count}; }

    // Proposes a chain; what is past the row's max_drafts is cut.
    void propose(uint32_t i, std::span<const int32_t> chain) {
        raw.counts[i] = 0;
        add_path(i, chain);
    }
    // Paths that row i may have in all: above 1 where the host verifies trees.
    uint32_t max_paths(uint32_t i) const { return raw.parents ? std::max(row(i).max_paths, 1u) : 1; }
    uint32_t paths(uint32_t i) const { // that it has
        uint32_t ends = 0;
        for (int32_t k = 0; k < static_cast<int32_t>(raw.counts[i]); ++k) ends += !is_followed(i, k);
        return ends;
    }
    // Proposes a path more, less likely than those before it: a chain from the newest token on, of which that is new
    // where it leaves the others. What is past max_drafts is cut; a path past max_paths is none.
    void add_path(uint32_t i, std::span<const int32_t> path) {
        path = path.first(std::min<size_t>(path.size(), row(i).max_drafts));
        int32_t at = -1;
        while (!path.empty()) {
            const int32_t next = find(i, at, path.front());
            if (next < 0) break;
            at = next;
            path = path.subspan(1);
        }
        const bool branches = is_followed(i, at);
        if (path.empty() || (branches && paths(i) >= max_paths(i))) return;
        for (const int32_t token : path) {
            const size_t to = size_t{i} * raw.max_drafts + raw.counts[i];
            raw.drafts[to] = token;
            if (raw.parents) raw.parents[to] = at;
            at = static_cast<int32_t>(raw.counts[i]++);
        }
    }
    // Whether drafts are verified by rejection: what was drawn at random has to come with what it was drawn from.
    bool wants_probabilities() const { return raw.probs != nullptr; }
    // Where to write that for draft k of row i, which counts as drawn from here on.
    std::span<float> drawn_from(uint32_t i, uint32_t k) {
        const size_t at = size_t{i} * raw.max_drafts + k;
        raw.drawn[at] = 1;
        return {raw.probs + at * raw.vocab_size, raw.vocab_size};
    }
    pb_propose_batch& raw;
    const Rows<pb_propose_row> rows;

  private:
    int32_t parent(uint32_t i, int32_t k) const {
        return raw.parents ? raw.parents[size_t{i} * raw.max_drafts + static_cast<size_t>(k)] : k - 1;
    }
    bool is_followed(uint32_t i, int32_t draft) const { return find(i, draft, std::nullopt) >= 0; }
    // The first draft after `draft`, of that token if one is given; −1: there is none.
    int32_t find(uint32_t i, int32_t draft, std::optional<int32_t> token) const {
        const auto count = static_cast<int32_t>(raw.counts[i]);
        for (int32_t k = draft + 1; k < count; ++k)
            if (parent(i, k) == draft &&
                (!token || raw.drafts[size_t{i} * raw.max_drafts + static_cast<size_t>(k)] == *token))
                return k;
        return -1;
    }
};

namespace detail {

template <class T>
struct ProposerTable {
    static pb_status propose(void* self, pb_propose_batch* batch) {
        return enter<T>(self, [&](T& t) {
            WholeInOut whole(batch);
            std::fill_n(batch->counts, batch->row_count, 0u);
            ProposeBatch b(*whole);
            t.propose(b);
        });
    }
    static void observe(void* self, uint64_t id, uint32_t proposed, uint32_t accepted) {
        notify<T>(self, "observe", [&](T& t) {
            if constexpr (kObserve) t.observe(id, proposed, accepted);
        });
    }
    static void finished(void* self, uint64_t id) {
        notify<T>(self, "finished", [&](T& t) {
            if constexpr (kFinished) t.finished(id);
        });
    }
    static constexpr bool kObserve = requires(T t) { t.observe(uint64_t{}, uint32_t{}, uint32_t{}); };
    static constexpr bool kFinished = requires(T t) { t.finished(uint64_t{}); };
    static constexpr pb_proposer table{sizeof(pb_proposer), 0, propose, kObserve ? observe : nullptr,
                                       kFinished ? finished : nullptr};
    static_assert(kObserve || !PB_HAS_MEMBER(T, observe),
                  "observe is: void observe(uint64_t id, uint32_t proposed, uint32_t accepted)");
    static_assert(kFinished || !PB_HAS_MEMBER(T, finished), "finished is: void finished(uint64_t id)");
    static_assert(!PB_HAS_MEMBER(T, observed) && !PB_HAS_MEMBER(T, on_accepted), "it is called observe");
    static_assert(!PB_HAS_MEMBER(T, finish) && !PB_HAS_MEMBER(T, on_finished), "it is called finished");
};

}  // namespace detail

template <class T>
    requires requires(T t, ProposeBatch& b) { t.propose(b); }
constexpr pb_component proposer(const About& about) {
    return detail::component<T, detail::ProposerTable<T>>(PB_PROPOSER, PB_PROPOSER_REVISION, about);
}

}  // namespace patchbay
