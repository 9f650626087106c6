#include "engine/loop/in_flight.hpp"

#include <utility>

#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "execution/sync_reasons.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void InFlightSteps::push(InFlightStep step) {
    for (Placed& item : step.items) {
        Sequence& s = *item.sequence;
        s.in_flight.tokens += item.tokens;
        // What ends for its length with this token is not planned again.
        const bool last = s.is_beam() || s.outputs() + s.in_flight.placeholders + 1 >= s.request->sampling.max_tokens ||
                          s.tokens.size() + s.in_flight.placeholders + 1 >= max_model_len_;
        item.placeholders = item.rows > 0 && !last;
        s.in_flight.placeholders += item.placeholders;
        s.in_flight.placeholder_row = item.first_row;
    }
    steps_.push_back(std::move(step));
}

std::span<Placed> InFlightSteps::take_back_placeholders(InFlightStep& step) const {
    for (const Placed& item : step.items) {
        item.sequence->in_flight.tokens -= item.tokens;
        item.sequence->in_flight.placeholders -= item.placeholders;
    }
    return step.items;
}

void InFlightSteps::drop_oldest() {
    for (kv::BlockTable& table : steps_.front().held) kv_.tables().release(table);
    steps_.pop_front();
}

void InFlightSteps::clear() {
    while (any()) drop_oldest();
}

void InFlightSteps::leave(Sequence& s) {
    InFlightStep& step = steps_.back();
    std::erase_if(step.items, [&](const Placed& item) { return item.sequence == &s; });
    step.held.push_back(std::exchange(s.kv.table, {}));
    s.in_flight = {};
}

void InFlightSteps::poison(const Sequence& s) {
    if (s.in_flight.tokens > 0) steps_.back().is_poisoned = true;
}

std::string_view InFlightSteps::history_reason() const {
    std::string_view out;
    if (steps_.empty()) return out;
    for (const Placed& item : steps_.front().items) {
        if (item.placeholders == 0 || item.sequence->sampling.history_reason.empty()) continue;
        if (out != execution::sync_reason::kStructuredOutput) out = item.sequence->sampling.history_reason;
    }
    return out;
}

}  // namespace patchbay::engine
