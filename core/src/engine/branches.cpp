// Verification of trees of drafts: each path of a sequence but the first is computed over a block table forked from the
// sequence's, so that no kernel and no other sequence sees a difference. The path that agrees with what is sampled
// leaves its table to the sequence.
#include <algorithm>
#include <utility>

#include "engine/simulation.hpp"
#include "engine/state.hpp"

namespace patchbay::engine {

// As far as budget, seats and pages go that the plan leaves free: the second paths of all sequences before the third.
void Engine::State::fork_branches() {
    drop_branches();
    uint32_t tokens = settings.max_num_batched_tokens, most = 0;
    for (const Scheduled& item : scheduled) {
        tokens -= item.tokens;
        most = std::max(most, static_cast<uint32_t>(item.rows > 0 ? item.sequence->branches.size() : 0));
    }
    for (uint32_t k = 0; k < most; ++k)
        for (size_t i = 0; i < scheduled.size(); ++i) {
            if (scheduled[i].rows == 0 || k >= scheduled[i].sequence->branches.size()) continue;
            const bool seat = scheduled.size() + branches.size() < settings.max_num_seqs;
            if (!seat || !fork_branch(i, scheduled[i].sequence->branches[k], tokens)) report.dropped_branches += 1;
        }
}

bool Engine::State::fork_branch(size_t i, const DraftPath& path, uint32_t& tokens) {
    const Scheduled& item = scheduled[i];
    const Sequence& s = *item.sequence;
    const auto count = static_cast<uint32_t>(path.size()) + 1;
    if (count > tokens || s.computed + 1 != item.confirmed) return false;
    Branch b{.item = i, .drafts = count - 1};
    if (!kv->fork(s.table, s.computed, b.table)) return false;
    if (kv->fitting(b.table, s.computed, count) < count || !kv->grow(b.table, s.computed + count)) {
        kv->discard(b.table);
        return false;
    }
    kv->own_pages(b.table, s.computed);
    b.shared = common_length(std::span(s.tokens).subspan(item.confirmed, item.rows - 1), path);
    for (const Branch& other : branches)
        if (other.item == i) b.shared = std::max(b.shared, common_length(other.path(), path));
    b.tokens.reserve(item.confirmed + path.size());
    b.tokens.assign(s.tokens.begin(), s.tokens.begin() + item.confirmed);
    b.tokens.insert(b.tokens.end(), path.begin(), path.end());
    tokens -= count;
    report.branches += 1;
    report.decode_tokens += count;
    branches.push_back(std::move(b));
    return true;
}

void Engine::State::add_branches() {
    for (Branch& b : branches) {
        const Scheduled& item = scheduled[b.item];
        Sequence& s = *item.sequence;
        b.first_token = batch.tokens();
        batch_rows.push_back({std::span(b.tokens).subspan(s.computed), s.computed, b.rows(), b.table});
        batch.add(batch_rows.back());
        b.first_row = static_cast<uint32_t>(sample_rows.size());
        for (uint32_t depth = b.shared + 1; depth <= b.drafts; ++depth) {
            pb_sample_row row = s.row_to_sample(depth);
            row.prompt = b.tokens.data();
            row.output = b.tokens.data() + s.prompt_count;
            row.output_count = item.confirmed - s.prompt_count + depth;
            sample_rows.push_back(row);
        }
        mask_rows({s, b.tokens, item.confirmed, b.shared + 1, b.rows(), b.first_row, b.masks, b.word_masks});
    }
}

// Tokens that a sequence takes, by row: drafts that are what is sampled in their place, and one more. The path whose
// KV they are: nullptr, the first one.
Branch* Engine::State::follow_drafts(const Scheduled& item) {
    const size_t i = static_cast<size_t>(&item - scheduled.data());
    const Sequence& s = *item.sequence;
    const std::span<const TokenId> first = std::span(s.tokens).subspan(item.confirmed, item.rows - 1);
    taken_rows.assign(1, item.first_row);
    std::vector<Branch*> others;
    for (Branch& b : branches)
        if (b.item == i) others.push_back(&b);
    bool on_first = true;
    Branch* winner = nullptr;
    for (uint32_t accepted = 0;; ++accepted) { // who agrees so far: the first path, where on_first, and others
        const TokenId token = sampled[taken_rows.back()];
        const auto agrees = [&](std::span<const TokenId> path) {
            return accepted < path.size() && path[accepted] == token;
        };
        on_first = on_first && agrees(first);
        std::erase_if(others, [&](const Branch* b) { return !agrees(b->path()); });
        if (!on_first && others.empty()) return winner;
        winner = on_first ? nullptr : others.front();
        taken_rows.push_back(on_first ? item.first_row + accepted + 1 : winner->row_behind(accepted + 1));
    }
}

// Its KV becomes the sequence's, but for a block that the newest token has filled: both have it, and the sequence's is
// the one that can be found. A draft model has computed none of its drafts.
void Engine::State::take_over(Sequence& s, Branch& b) {
    for (size_t i = b.table.keys.size(); i < s.table.keys.size(); ++i) {
        for (size_t g = 0; g < kv->windows().size(); ++g) std::swap(s.table.pages[g][i], b.table.pages[g][i]);
        b.table.keys.push_back(s.table.keys[i]);
    }
    std::swap(s.table, b.table);
    s.draft_kv = {.computed = std::min(s.draft_kv.computed, s.computed),
                  .ahead = {},
                  .lost = s.draft_kv.lost,
                  .hidden = {s.computed, b.drafts + 1, b.first_token},
                  .made = {}};
}

void Engine::State::drop_branches() {
    for (Branch& b : branches) kv->discard(b.table);
    branches.clear();
}

}  // namespace patchbay::engine
