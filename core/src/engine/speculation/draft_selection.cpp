#include "engine/speculation/draft_selection.hpp"

#include <algorithm>

#include "config/engine_config.hpp"
#include "engine/loop/aborts.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/speculation/draft_model.hpp"

namespace patchbay::engine {
namespace {

// Not a prompt that lacks its last token only.
bool generates(const Sequence& s) { return s.outputs() > 0 && s.decoding(); }

}  // namespace

DraftSelection::DraftSelection(const Parts& parts) : p_(parts) {}

void DraftSelection::forget_acceptance() {
    if (p_.speculation.mode == config::DraftMode::kAdaptive) length_.emplace(p_.settings.num_speculative_tokens);
}

uint32_t DraftSelection::choose_length() {
    const auto running = p_.sequences.running();
    const auto decoding = std::ranges::count_if(running, [](const Sequence* s) { return generates(*s); });
    if (length_ && decoding > 0) length_->choose(static_cast<uint32_t>(decoding));
    return p_.context.report.drafts.length = length_ ? length_->chosen() : p_.settings.num_speculative_tokens;
}

std::vector<DraftRow> DraftSelection::select() {
    const uint32_t length = choose_length();
    std::vector<DraftRow> out;
    const auto running = p_.sequences.running();
    for (Sequence* s : running) {
        if (p_.aborts.has(s->group)) continue;
        if (s->is_beam()) continue; // a draft continues one beam, and each step takes up others
        if (!generates(*s) || s->drafts > 0) continue; // drafts that were not verified in this step still stand
        if (s->sampling.samples_by_surprisal()) continue;
        const uint32_t left = s->request->sampling.max_tokens - s->outputs(); // at least 1, made by the step itself
        const uint32_t room = p_.max_model_len - s->confirmed();
        uint32_t count = std::min({length, left - 1, room > 0 ? room - 1 : 0});
        if (count > 0 && p_.draft_model) count = p_.draft_model->make_room(*s, count, running.size());
        if (count == 0) continue;
        if (s->tokens.capacity() < s->tokens.size() + length) s->tokens.reserve(2 * s->tokens.size() + length);
        out.push_back({s, {s->id, s->tokens.data(), s->confirmed(), count, p_.speculation.max_paths, 0}});
    }
    return out;
}

}  // namespace patchbay::engine
