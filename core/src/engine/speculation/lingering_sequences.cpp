#include "engine/speculation/lingering_sequences.hpp"

#include <utility>

#include "engine/request/sequence.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "engine/speculation/draft_model.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

LingeringSequences::LingeringSequences(kv::KvCache& kv, DraftKvTable& draft_kv, const DraftModel* draft_model)
    : kv_(kv), draft_kv_(draft_kv), draft_model_(draft_model) {}
LingeringSequences::~LingeringSequences() { release(); }

void LingeringSequences::add(std::unique_ptr<Sequence> s) { all_.push_back(std::move(s)); }

bool LingeringSequences::wants(const Sequence& s) const {
    if (!draft_model_ || !draft_model_->keeps_kv()) return false;
    const size_t shared = s.kv.table.keys.size() * kv_.shape().block_size(); // tokens
    const DraftKv& known = draft_kv_.of(s);
    return !known.lost && shared > known.computed;
}

void LingeringSequences::release() {
    for (const auto& s : all_) {
        kv_.tables().release(s->kv.table);
        draft_kv_.erase(*s);
    }
    all_.clear();
}

}  // namespace patchbay::engine
