// Sequences that ended in the step that computed their prompt: their pages stay until the draft model has computed
// them too, since a block is shared with the KV of both models.
#pragma once
#include <memory>
#include <span>
#include <vector>

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftKvTable;
class DraftModel;
struct Sequence;

class LingeringSequences {
  public:
    LingeringSequences(kv::KvCache& kv, DraftKvTable& draft_kv, const DraftModel* draft_model);
    ~LingeringSequences();
    LingeringSequences(const LingeringSequences&) = delete;
    LingeringSequences& operator=(const LingeringSequences&) = delete;

    bool wants(const Sequence&) const; // that ends in this step
    void add(std::unique_ptr<Sequence>);
    std::span<const std::unique_ptr<Sequence>> all() const { return all_; }
    void release();

  private:
    kv::KvCache& kv_;
    DraftKvTable& draft_kv_;
    const DraftModel* const draft_model_; // null: there is none, and nothing lingers
    std::vector<std::unique_ptr<Sequence>> all_;
};

}  // namespace patchbay::engine
