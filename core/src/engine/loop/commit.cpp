#include "engine/loop/commit.hpp"

#include <algorithm>
#include <utility>

#include "engine/groups/siblings.hpp"
#include "engine/loop/aborts.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/loop/lifecycle.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/speculation/branches.hpp"
#include "engine/speculation/draft_feedback.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

void Commit::commit(std::span<const Placed> step, const StepSamples& samples, std::span<const float> hidden) {
    p_.pooling.take(hidden);
    ended_beams_.clear();
    for (size_t i = 0; i < step.size(); ++i) {
        const Placed& item = step[i];
        Sequence& s = *item.sequence;
        p_.prompt_logprobs.take(item, samples);
        if (item.rows == 0) s.computed += item.tokens;
        else if (s.is_beam()) take_beam(item, samples);
        else fill_placeholders(step, i, samples);
        if (s.request->pooling) pool(s);
        if (p_.siblings.holds(s) && s.outputs() > 0) p_.lifecycle.release_siblings(s);
        p_.drafting.free_outside_window(s);
    }
    p_.lifecycle.admit_released();
    p_.branches.drop();
}

// Drafts are accepted while they equal what was sampled.
void Commit::fill_placeholders(std::span<const Placed> step, size_t i, const StepSamples& samples) {
    const Placed& item = step[i];
    Sequence& s = *item.sequence;
    if (p_.aborts.has(s.group)) { // it ends with the step, without the step's tokens
        s.drop_drafts();
        s.computed = item.confirmed;
        return;
    }
    if (item.rows == 1 && p_.branches.all().empty()) { // nothing was drafted
        s.drop_drafts();
        s.computed = item.confirmed;
        append(s, samples.tokens[item.first_row], item.first_row, samples);
        return;
    }
    const Branches::Followed& followed = p_.branches.follow(step, i, samples);
    const auto accepted = static_cast<uint32_t>(followed.rows.size()) - 1;
    count_drafts(step, i, accepted);
    if (followed.winner) {
        const auto first = std::span(s.tokens).subspan(item.confirmed, item.rows - 1);
        const uint32_t on_first = common_length(first, followed.winner->path().first(accepted));
        p_.context.report.drafts.branch_tokens += accepted - on_first;
        p_.branches.take_over(s, *followed.winner);
    }
    s.drop_drafts();
    s.computed = item.confirmed + accepted; // the KV of accepted drafts is there, that of the newest token is not
    for (const uint32_t row : followed.rows)
        if (!append(s, samples.tokens[row], row, samples)) return;
}

void Commit::count_drafts(std::span<const Placed> step, size_t i, uint32_t accepted) {
    StepReport& report = p_.context.report;
    uint32_t verified = 0;
    const auto count = [&](uint32_t from, uint32_t to) { // drafts of a path
        verified += to - from;
        for (uint32_t j = from; j < to; ++j)
            report.drafts.drafted_at[std::min<size_t>(j, DraftReport::kPositions - 1)] += 1;
    };
    count(0, step[i].rows - 1);
    for (const Branch& b : p_.branches.all())
        if (b.item == i) count(b.shared, b.drafts);
    for (uint32_t j = 0; j < accepted; ++j)
        report.drafts.accepted_at[std::min<size_t>(j, DraftReport::kPositions - 1)] += 1;
    report.drafts.verified_sequences += verified > 0;
    report.drafts.drafted_tokens += verified;
    report.drafts.accepted_tokens += accepted;
    p_.drafting.observe(*step[i].sequence, verified, accepted);
}

void Commit::pool(Sequence& s) {
    if (p_.aborts.has(s.group)) return; // it ends with the step
    if (auto ending = p_.pooling.finish(s)) p_.lifecycle.finish(s, *std::move(ending));
}

bool Commit::append(Sequence& s, TokenId token, uint32_t row, const StepSamples& samples) {
    if (token < 0 || static_cast<uint32_t>(token) >= p_.vocab_size) { // a failing request fails alone
        p_.context.report.calls.sampler_faults += 1;
        p_.context.report.calls.sampler_breaches += 1;
        if (p_.model_computes) p_.in_flight.poison(s);
        p_.lifecycle.finish(s, {FinishReason::kError,
                                p_.sampler.text() + " gave token " + std::to_string(token) + ", expected 0 to " +
                                    std::to_string(p_.vocab_size - 1),
                                StatusCode::kFailed});
        return false;
    }
    bool must_end = false;
    if (p_.constraints.applies(s)) {
        if (const auto accepted = p_.constraints.accept(s, token, row, p_.sampler.text()); !accepted) {
            p_.lifecycle.finish(s, {FinishReason::kError, accepted.error(), accepted.code()});
            return false;
        }
        must_end = p_.constraints.is_complete(s);
    }
    auto ending = p_.outputs.append(s, token, row, samples, must_end);
    if (ending) p_.lifecycle.finish(s, *std::move(ending));
    return !ending;
}

void Commit::take_beam(const Placed& item, const StepSamples& samples) {
    Sequence& s = *item.sequence;
    if (s.ended || p_.aborts.has(s.group)) return; // with another one of its search, or with the step
    const auto fault = p_.beams.take(item, samples, p_.sampler.text());
    if (!fault) return;
    for (BeamSearches::Ending& e : p_.beams.end(s, *fault)) {
        p_.lifecycle.finish(*e.sequence, {e.reason, std::move(e.why), e.code});
        ended_beams_.push_back(e.sequence);
    }
}

void Commit::publish(std::span<const Placed> step) {
    std::vector<Sequence*> going_on;
    std::vector<std::unique_ptr<Sequence>> ended;
    const auto collect = [&](Sequence& s) {
        RequestOutput& delta = s.output.delta;
        if (delta.tokens.empty() && !s.ended) return;
        delta.time_ns = p_.context.now_ns;
        if (!s.ended) return going_on.push_back(&s);
        ended.push_back(p_.sequences.remove(s.id));
    };
    for (Sequence* s : std::exchange(ended_beams_, {})) collect(*s);
    for (const Placed& item : step)
        if (!item.sequence->is_beam()) collect(*item.sequence); // the outputs of beams are known at their end
    for (Sequence* s : going_on) { // one that a callback aborts is there until the step ends
        if (p_.aborts.has(s->group)) p_.outputs.take_back(*s);
        else p_.outputs.hand_out(*s);
    }
    for (auto& s : ended) {
        if (p_.aborts.has(s->group)) p_.outputs.take_back(*s);
        if (s->request->on_output) s->request->on_output(s->output.delta);
        if (s->kv.table.held > 0) p_.drafting.linger(std::move(s));
    }
}

}  // namespace patchbay::engine
