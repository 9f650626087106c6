#include "engine/speculation/branches.hpp"

#include <algorithm>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "engine/speculation/draft_records.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

Branches::Branches(const config::EngineSettings& settings, kv::KvCache& kv, const DraftRecords& drafts,
                   DraftKvTable& draft_kv, StepContext& context)
    : settings_(settings), kv_(kv), drafts_(drafts), draft_kv_(draft_kv), context_(context) {}

void Branches::fork(std::span<const Placed> step) {
    drop();
    const auto paths_of = [this](const Sequence& s) { return drafts_.branches(s.id, s.drafts); };
    uint32_t tokens = settings_.max_num_batched_tokens;
    size_t max_branches = 0;
    for (const Placed& item : step) {
        tokens -= item.tokens;
        if (item.rows > 0) max_branches = std::max(max_branches, paths_of(*item.sequence).size());
    }
    for (size_t k = 0; k < max_branches; ++k)
        for (size_t i = 0; i < step.size(); ++i) {
            const auto paths = paths_of(*step[i].sequence);
            if (step[i].rows == 0 || k >= paths.size()) continue;
            const bool seat = step.size() + branches_.size() < settings_.max_num_seqs;
            if (!seat || !fork(step, i, paths[k], tokens)) context_.report.drafts.dropped_branches += 1;
        }
}

bool Branches::fork(std::span<const Placed> step, size_t i, const DraftPath& path, uint32_t& tokens_left) {
    const Placed& item = step[i];
    const Sequence& s = *item.sequence;
    const auto count = static_cast<uint32_t>(path.size()) + 1;
    if (count > tokens_left || s.computed + 1 != item.confirmed) return false;
    Branch b{.item = i, .drafts = count - 1};
    if (!kv_.tables().fork(s.kv.table, s.computed, b.table)) return false;
    if (kv_.tables().fitting(b.table, s.computed, count) < count || !kv_.tables().grow(b.table, s.computed + count)) {
        kv_.tables().discard(b.table);
        return false;
    }
    kv_.tables().copy_on_write(b.table, s.computed);
    b.shared = common_length(std::span(s.tokens).subspan(item.confirmed, item.rows - 1), path);
    for (const Branch& other : branches_)
        if (other.item == i) b.shared = std::max(b.shared, common_length(other.path(), path));
    b.tokens.reserve(item.confirmed + path.size());
    b.tokens.assign(s.tokens.begin(), s.tokens.begin() + item.confirmed);
    b.tokens.insert(b.tokens.end(), path.begin(), path.end());
    tokens_left -= count;
    context_.report.drafts.branches += 1;
    context_.report.work.decode_tokens += count;
    branches_.push_back(std::move(b));
    return true;
}

const Branches::Followed& Branches::follow(std::span<const Placed> step, size_t i, const StepSamples& samples) {
    const Placed& item = step[i];
    const std::span<const TokenId> first = std::span(item.sequence->tokens).subspan(item.confirmed, item.rows - 1);
    std::vector<Branch*> others;
    for (Branch& b : branches_)
        if (b.item == i) others.push_back(&b);
    bool on_first = true;
    Followed& out = followed_;
    out.rows.assign(1, item.first_row);
    out.winner = nullptr;
    for (uint32_t accepted = 0;; ++accepted) { // which paths agree so far: the first path, where on_first, and others
        const TokenId token = samples.tokens[out.rows.back()];
        const auto agrees = [&](std::span<const TokenId> path) {
            return accepted < path.size() && path[accepted] == token;
        };
        on_first = on_first && agrees(first);
        std::erase_if(others, [&](const Branch* b) { return !agrees(b->path()); });
        if (!on_first && others.empty()) return out;
        out.winner = on_first ? nullptr : others.front();
        out.rows.push_back(on_first ? item.first_row + accepted + 1 : out.winner->row_after(accepted + 1));
    }
}

// But for a block that the newest token has filled: both have it, and the sequence's is the one that can be found. A
// draft model has computed none of its drafts.
void Branches::take_over(Sequence& s, Branch& b) {
    for (size_t i = b.table.keys.size(); i < s.kv.table.keys.size(); ++i) {
        for (size_t g = 0; g < kv_.shape().windows().size(); ++g)
            std::swap(s.kv.table.pages[g][i], b.table.pages[g][i]);
        b.table.keys.push_back(s.kv.table.keys[i]);
    }
    std::swap(s.kv.table, b.table);
    DraftKv known = draft_kv_.continued(s, s.computed);
    known.hidden = {s.computed, b.drafts + 1, b.first_token};
    draft_kv_.set(s, std::move(known));
}

void Branches::drop() {
    for (Branch& b : branches_) kv_.tables().discard(b.table);
    branches_.clear();
}

}  // namespace patchbay::engine
