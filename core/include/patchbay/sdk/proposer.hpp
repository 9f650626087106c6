// patchbay/sdk/proposer.hpp - a proposer as a class: void propose(patchbay::ProposeBatch&).
// Optional: observe(id, proposed, accepted), finished(id).
#pragma once
#include "patchbay/abi/proposer.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

struct ProposeBatch {
    explicit ProposeBatch(pb_propose_batch& batch) : raw(batch) {}
    uint32_t size() const { return raw.row_count; }
    const pb_propose_row& row(uint32_t i) const {
        return *reinterpret_cast<const pb_propose_row*>(reinterpret_cast<const char*>(raw.rows) +
                                                        size_t{i} * raw.row_stride);
    }
    std::span<const int32_t> tokens(uint32_t i) const { return {row(i).tokens, row(i).token_count}; }

    // Proposes a chain; what is past the row's max_drafts is cut.
    void propose(uint32_t i, std::span<const int32_t> chain) {
        const size_t n = std::min<size_t>(chain.size(), row(i).max_drafts);
        std::copy_n(chain.begin(), n, raw.drafts + size_t{i} * raw.max_drafts);
        raw.counts[i] = static_cast<uint32_t>(n);
    }
    // Whether drafts are verified by rejection: what was drawn at random has to come with what it was drawn from.
    bool wants_probabilities() const { return raw.struct_size >= sizeof(pb_propose_batch) && raw.probs; }
    // Where to write that for draft k of row i, which counts as drawn from here on.
    std::span<float> drawn_from(uint32_t i, uint32_t k) {
        const size_t at = size_t{i} * raw.max_drafts + k;
        raw.drawn[at] = 1;
        return {raw.probs + at * raw.vocab_size, raw.vocab_size};
    }
    pb_propose_batch& raw;
};

namespace detail {

template <class T>
struct ProposerTable {
    static pb_status propose(void* self, pb_propose_batch* batch) {
        return enter<T>(self, [&](T& t) {
            std::fill_n(batch->counts, batch->row_count, 0u);
            ProposeBatch b(*batch);
            t.propose(b);
        });
    }
    static void observe(void* self, uint64_t id, uint32_t proposed, uint32_t accepted) {
        notify<T>(self, "observe", [&](T& t) {
            if constexpr (requires { t.observe(id, proposed, accepted); }) t.observe(id, proposed, accepted);
        });
    }
    static void finished(void* self, uint64_t id) {
        notify<T>(self, "finished", [&](T& t) {
            if constexpr (requires { t.finished(id); }) t.finished(id);
        });
    }
    static constexpr bool kObserve = requires(T t) { t.observe(uint64_t{}, uint32_t{}, uint32_t{}); };
    static constexpr bool kFinished = requires(T t) { t.finished(uint64_t{}); };
    static constexpr pb_proposer table{sizeof(pb_proposer), 0, propose, kObserve ? observe : nullptr,
                                       kFinished ? finished : nullptr};
};

}  // namespace detail

template <class T>
    requires requires(T t, ProposeBatch& b) { t.propose(b); }
constexpr pb_component proposer(const About& about) {
    return detail::component<T>(PB_PROPOSER, PB_PROPOSER_DIGEST, about, &detail::ProposerTable<T>::table);
}

}  // namespace patchbay
