#include "engine/loop/lifecycle.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/groups/siblings.hpp"
#include "engine/loop/aborts.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/loop/step_failure.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/sampling/row_constraint.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "engine/scheduling/scheduler_port.hpp"
#include "engine/speculation/draft_feedback.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void Lifecycle::end_step() {
    in_step_ = false;
    for (const RequestId id : p_.admission.take_refused())
        end(id, {FinishReason::kError, p_.admission.full_queue(), StatusCode::kExhausted});
    for (const RequestId id : p_.aborts.take()) abort(id);
}

void Lifecycle::finish(Sequence& s, Ending ending) {
    p_.admission.leave(s);
    s.drop_drafts();
    p_.kv.swap().drop(s.kv.swapped);
    if (s.in_flight.tokens > 0) p_.in_flight.leave(s);
    else if (!in_step_ || !p_.drafting.lingers(s)) p_.kv.tables().release(s.kv.table);
    s.ended = true;
    p_.outputs.finish(s, std::move(ending));
    if (s.announced) p_.scheduler.finished(s);
    p_.drafting.finished(s);
    p_.context.report.work.finished += 1;
    if (p_.siblings.holds(s)) release_siblings(s);
    if (s.has_siblings() || s.is_beam()) {
        if (p_.siblings.leave(s)) p_.beams.leave(s.group);
        p_.hints.refresh_siblings(s.group);
    }
    p_.constraints.erase(s);
    p_.prompt_logprobs.erase(s);
    p_.pooling.erase(s);
    p_.surprisals.erase(s.id);
}

void Lifecycle::release_siblings(const Sequence& first) {
    const std::vector<Sequence*> released = p_.siblings.release(first);
    released_.insert(released_.end(), released.begin(), released.end());
}

// Before those that wait, since they came with the first.
void Lifecycle::admit_released() {
    for (auto at = released_.rbegin(); at != released_.rend(); ++at) p_.admission.put_first(**at);
    released_.clear();
}

void Lifecycle::abort(RequestId request) {
    if (in_step_) return p_.aborts.add(request);
    end(request, {FinishReason::kAbort, ""});
}

void Lifecycle::end(RequestId request, const Ending& ending) {
    // The first one last, since it holds others. Callbacks may end some too.
    while (!p_.siblings.of(request).empty()) end_one(*p_.siblings.of(request).back(), ending);
    if (Sequence* s = p_.sequences.find(request); s && s->group == request) end_one(*s, ending);
    admit_released();
}

void Lifecycle::end_one(Sequence& s, const Ending& ending) {
    finish(s, ending);
    s.output.delta.time_ns = p_.clock.now_ns();
    const std::unique_ptr<Sequence> owned = p_.sequences.remove(s.id);
    if (s.request->on_output) s.request->on_output(s.output.delta);
}

void Lifecycle::fail_all(const Failure& of_step) {
    const Failure why = for_requests(of_step);
    std::vector<RequestId> ids;
    for (const auto& [id, sequence] : p_.sequences.all()) ids.push_back(id);
    std::ranges::sort(ids);
    std::vector<std::unique_ptr<Sequence>> ended;
    for (const RequestId id : ids) {
        Sequence& s = *p_.sequences.find(id);
        if (!s.ended) finish(s, {FinishReason::kError, why.text, why.code}); // else it ended in this step
        s.output.delta.time_ns = p_.clock.now_ns();
        ended.push_back(p_.sequences.remove(id));
    }
    released_.clear();
    p_.in_flight.clear();
    for (const auto& s : ended)
        if (s->request->on_output) s->request->on_output(s->output.delta);
}

}  // namespace patchbay::engine
