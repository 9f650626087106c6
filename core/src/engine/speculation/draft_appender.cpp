#include "engine/speculation/draft_appender.hpp"

#include <iterator>
#include <utility>

#include "engine/loop/step_context.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/row_constraint.hpp"
#include "engine/speculation/draft_records.hpp"
#include "engine/speculation/draft_verification.hpp"

namespace patchbay::engine {

void DraftAppender::append_chain(Sequence& s, std::span<const TokenId> drafts, const DrawnDrafts& from) {
    for (size_t j = 0; j < drafts.size(); ++j) {
        if (drafts[j] < 0 || static_cast<uint32_t>(drafts[j]) >= p_.vocab_size) break; // the rest depends on it
        append(s, drafts[j],
               from.drawn[j] != 0 ? from.probs.subspan(j * p_.vocab_size, p_.vocab_size) : from.probs.first(0));
    }
    cut_disallowed(s);
}

void DraftAppender::append(Sequence& s, TokenId token, std::span<const float> from) {
    DraftRecord& r = p_.drafts.of(s.id);
    if (s.drafts == 0) r = {};
    s.tokens.push_back(token);
    s.drafts += 1;
    if (!p_.verification.is_by_rejection()) return;
    const bool drawn = !from.empty() && from[static_cast<size_t>(token)] > 0; // else it cannot have been drawn
    r.drawn.push_back(drawn);
    if (drawn) r.probs.insert(r.probs.end(), from.begin(), from.end());
    else r.probs.resize(r.probs.size() + p_.vocab_size);
}

// From the first draft on that its constraints do not allow. One that was drawn is verified like any other: to leave it
// out would make others more likely.
void DraftAppender::cut_disallowed(Sequence& s) {
    if (!p_.constraints.applies(s)) return;
    uint32_t allowed = p_.constraints.count_allowed(s, std::span<const TokenId>(s.tokens).last(s.drafts));
    if (allowed < s.drafts && p_.verification.is_by_rejection() && p_.drafts.of(s.id).drawn[allowed]) allowed += 1;
    p_.context.report.grammars.cut_drafts += s.drafts - allowed;
    s.tokens.resize(s.confirmed() + allowed);
    s.drafts = allowed;
}

void DraftAppender::append_tree(Sequence& s, std::vector<DraftPath> tree) {
    std::vector<DraftPath> paths;
    for (DraftPath& path : tree) {
        const uint32_t allowed = p_.constraints.count_allowed(s, path);
        p_.context.report.grammars.cut_drafts += static_cast<uint32_t>(path.size()) - allowed;
        path.resize(allowed);
        add_path(paths, std::move(path), p_.max_paths);
    }
    if (paths.empty()) return;
    for (const TokenId token : paths.front()) append(s, token, {});
    auto& branches = p_.drafts.of(s.id).branches;
    branches.assign(std::make_move_iterator(paths.begin() + 1), std::make_move_iterator(paths.end()));
}

}  // namespace patchbay::engine
