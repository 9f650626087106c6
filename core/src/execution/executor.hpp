// What computes a step: a model on this rank or on several, or what stands in for one. The engine's only way to tokens.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "kv/copy_queue.hpp"
#include "runner/batch.hpp"
#include "runner/sampled_rows.hpp"

namespace patchbay::host {
class Component;
}

namespace patchbay::execution {

class AttentionExchange;
class DraftPasses;
class ModelExchange;
struct PassStats;

// Logit rows of one path of a sequence's drafts: the row of the newest token and of those that verify drafts, or those
// of a further path (`is_branch`), which begin where it leaves the paths before it.
struct RowPath {
    uint64_t sequence = 0;
    uint32_t first_row = 0, rows = 0;
    bool is_branch = false;
    std::span<const int32_t> drafts;
    std::span<const int32_t> stop_token_ids; // of its request
};

struct StepInput {
    const runner::Batch& batch;
    const std::vector<runner::BatchRow>& rows; // of the batch, for other ranks
    std::span<const kv::PageCopy> copies;      // likewise
    pb_sample_batch samples{};                 // rows to sample; what is of logits and outputs is not looked at
    const host::Component* sampler = nullptr;  // that samples in the pass, on the device; null: logits are wanted
    bool overlaps = false;                     // the host goes on while it computes; never where logits are wanted
    bool is_redone_if_it_fails = false;        // then all ranks are well when submit() returns, and ready for it
};

struct StepOutput { // valid until the next step is submitted; of what was sampled: until the next one is waited for
    std::span<float> logits;            // (rows, vocab) in host memory; empty: they were sampled, or there are no rows
    runner::SampledRows sampled;
    bool is_sampled = false;
    std::span<const float> hidden; // (tokens, hidden_size), as the batch wants them; of a step that does not overlap
};

enum class TokenSource {
    kModel,
    kMadeUp,     // without text
    kMadeUpText, // of a vocabulary
};

class Executor { // [step thread]
  public:
    virtual ~Executor() = default;

    virtual TokenSource tokens() const = 0;
    // Why a step must be back before the next one is submitted, of sync_reasons.hpp: kDevice, kRanks. Empty: one may be
    // in flight.
    virtual std::string_view sync_reason() const = 0;
    virtual Result<> check_sampler(const host::Component&) const = 0; // that it can sample what this computes

    // That steps are possible: the failure is of a rank that has gone, also where no step waits for it.
    virtual Result<> check() const { return {}; }

    // Elements of the hidden states that batches may want; 0: the model does not give them.
    virtual uint32_t hidden_size() const { return 0; }

    // Begins a step after those in flight, or computes it if it does not overlap, which it may where none is in flight.
    // A batch without tokens is its copies. A failure, here or in wait(), cancels what is in flight.
    virtual Result<> submit(const StepInput&) = 0;
    // Of the oldest step that was submitted; fails if there is none. `paths`: of its rows those whose sequences go on.
    virtual Result<StepOutput> wait(std::span<const RowPath> paths) = 0;
    virtual void cancel() = 0; // what is in flight: waits for it, and its results are lost
    // From logits of the latest step, on the device, again if need be.
    virtual Result<runner::SampledRows> sample(std::span<const float> logits, const runner::SampleCall&) = 0;

    virtual DraftPasses* drafts() { return nullptr; } // null: there is no draft model
    virtual ModelExchange* model() { return nullptr; }         // null: it cannot be exchanged
    virtual AttentionExchange* attention() { return nullptr; } // null: it cannot be exchanged, other ranks have theirs

    virtual PassStats stats() const = 0;
    virtual double page_copy_ns() const = 0; // to host memory or back, as measured; 0: not yet
};

}  // namespace patchbay::execution
