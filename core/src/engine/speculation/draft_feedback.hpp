// What commits and endings say to the part that drafts, and the pages that it still wants of sequences that have ended.
#pragma once
#include <cstdint>
#include <memory>

namespace patchbay::engine {

struct Sequence;

class DraftFeedback {
  public:
    virtual ~DraftFeedback() = default;

    // Of a sequence: drafts that a step verified, and how many of them it took.
    virtual void observe(const Sequence&, uint32_t verified, uint32_t accepted) = 0;
    // KV that no model has to see any more is given up, now or once drafts are made.
    virtual void free_outside_window(Sequence&) = 0;
    // Whether a sequence that ends keeps its pages until the draft model has computed what others may share.
    virtual bool lingers(const Sequence&) const = 0;
    virtual void linger(std::unique_ptr<Sequence>) = 0;
    virtual void finished(const Sequence&) = 0;
};

}  // namespace patchbay::engine
