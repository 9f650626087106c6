#include "scenario/compare.hpp"

#include <algorithm>

namespace patchbay::scenario {
namespace {

// In place of a number that a request has not: no file can expect it.
constexpr uint64_t kGone = ~uint64_t{0};

const pb_sequence* find(const std::vector<pb_sequence>& all, engine::RequestId id) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const pb_sequence& s) { return s.id == id; });
    return at == all.end() ? nullptr : &*at;
}

Names names_of(const std::vector<pb_sequence>& all, const State& state) {
    Names out;
    for (const pb_sequence& s : all) out.push_back(state.names.at(s.id));
    return out;
}

// Of the requests that are expected: f(record) while they are there, else at_end(what is known).
template <class F, class G>
Counts counts_of(const Value& expected, const State& state, F&& f, G&& at_end) {
    Counts out;
    for (const auto& [name, ignored] : std::get<Counts>(expected)) {
        const Known& known = state.requests.at(name);
        const pb_sequence* s = find(state.engine.running, known.id);
        if (!s) s = find(state.engine.waiting, known.id);
        out[name] = s ? f(*s) : at_end(known);
    }
    return out;
}
template <class F>
Counts counts_of(const Value& expected, const State& state, F&& f) {
    return counts_of(expected, state, f, [](const Known&) { return kGone; });
}

std::string text(uint64_t n) { return n == kGone ? "ended" : std::to_string(n); }
std::string text(TokenId n) { return std::to_string(n); }
std::string text(const std::string& s) { return s; }
template <class T>
std::string text(const std::vector<T>& list) {
    std::string out;
    for (const T& item : list) out += (out.empty() ? "" : ", ") + text(item);
    return "[" + out + "]";
}
template <class T>
std::string text(const std::map<std::string, T>& map) {
    std::string out;
    for (const auto& [key, value] : map) out += (out.empty() ? "" : ", ") + key + ": " + text(value);
    return "{" + out + "}";
}

}  // namespace

Value value_of(Subject subject, const Value& expected, const State& s) {
    switch (subject) {
        case Subject::kScheduled: {
            Counts out;
            for (const pb_plan_item& i : s.plan) out[s.names.at(i.id)] = i.tokens;
            return out;
        }
        case Subject::kPreempted: {
            Names out;
            for (const engine::RequestId id : s.engine.preempted) out.push_back(s.names.at(id));
            return out;
        }
        case Subject::kWaiting: return names_of(s.engine.waiting, s);
        case Subject::kRunning: return names_of(s.engine.running, s);
        case Subject::kFinished: return s.finished;
        case Subject::kInFlight:
            return counts_of(expected, s, [](const pb_sequence& r) { return uint64_t{r.in_flight}; });
        case Subject::kComputed:
            return counts_of(expected, s, [](const pb_sequence& r) { return uint64_t{r.computed_tokens}; });
        case Subject::kCachedTokens:
            return counts_of(
                expected, s, [](const pb_sequence& r) { return uint64_t{r.cached_tokens}; },
                [](const Known& k) { return uint64_t{k.cached_tokens}; });
        case Subject::kDrafts:
            return counts_of(expected, s, [](const pb_sequence& r) { return uint64_t{r.draft_tokens}; });
        case Subject::kPreemptions:
            return counts_of(
                expected, s, [](const pb_sequence& r) { return uint64_t{r.preemptions}; },
                [](const Known& k) { return uint64_t{k.preemptions}; });
        case Subject::kText: {
            Texts out;
            for (const auto& [name, ignored] : std::get<Texts>(expected)) out[name] = s.requests.at(name).output;
            return out;
        }
        case Subject::kFreeBlocks: return uint64_t{s.engine.free_blocks};
        case Subject::kCachedBlocks: return uint64_t{s.engine.cached_blocks};
        case Subject::kHitTokens: return s.hit_tokens;
        case Subject::kQueryTokens: return s.query_tokens;
        case Subject::kPlanFaults: return s.plan_faults;
        case Subject::kPolicy: return s.policy;
        case Subject::kSwapped: {
            Names out;
            for (const pb_sequence& w : s.engine.waiting)
                if (w.flags & PB_SEQ_SWAPPED) out.push_back(s.names.at(w.id));
            return out;
        }
        case Subject::kFreeSwapBlocks: return uint64_t{s.engine.free_swap_blocks};
    }
    return {};
}

std::string text_of(const Value& value) {
    return std::visit([](const auto& v) { return text(v); }, value);
}

}  // namespace patchbay::scenario
