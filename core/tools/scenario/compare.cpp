#include "scenario/compare.hpp"

#include <algorithm>

#include "scenario/load.hpp"

namespace patchbay::scenario {
namespace {

constexpr std::string_view kNotEnded = "has not ended"; // in place of a reason

// In place of a number that a request has not: no file can expect it.
constexpr uint64_t kGone = ~uint64_t{0};
constexpr uint64_t kNotCached = kGone - 1; // likewise, of a block

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

// Over all requests, those that are there and those that have ended.
template <class F, class G>
Number sum_of(const State& state, F&& f, G&& at_end) {
    uint64_t sum = 0;
    for (const pb_sequence& s : state.engine.running) sum += f(s);
    for (const pb_sequence& s : state.engine.waiting) sum += f(s);
    for (const auto& [name, known] : state.requests) sum += at_end(known); // 0 before its end
    return sum;
}

Number total_of(Subject subject, const State& s) {
    const auto nothing = [](const Known&) { return uint64_t{0}; };
    switch (subject) {
        case Subject::kScheduled: {
            uint64_t tokens = 0;
            for (const pb_plan_item& i : s.plan) tokens += i.tokens;
            return tokens;
        }
        case Subject::kInFlight: return sum_of(s, [](const pb_sequence& r) { return r.in_flight; }, nothing);
        case Subject::kComputed: return sum_of(s, [](const pb_sequence& r) { return r.computed_tokens; }, nothing);
        case Subject::kDrafts: return sum_of(s, [](const pb_sequence& r) { return r.draft_tokens; }, nothing);
        case Subject::kCachedTokens:
            return sum_of(
                s, [](const pb_sequence& r) { return r.cached_tokens; },
                [](const Known& k) { return k.cached_tokens; });
        case Subject::kPreemptions:
            return sum_of(
                s, [](const pb_sequence& r) { return r.preemptions; }, [](const Known& k) { return k.preemptions; });
        default: return {};
    }
}

Number count_of(Subject subject, const State& s) {
    switch (subject) {
        case Subject::kScheduled: return s.plan.size();
        case Subject::kPreempted: return s.engine.preempted.size();
        case Subject::kWaiting: return s.engine.waiting.size();
        case Subject::kRunning: return s.engine.running.size();
        case Subject::kFinished: return s.finished.size();
        case Subject::kSwapped:
            return static_cast<uint64_t>(std::ranges::count_if(
                s.engine.waiting, [](const pb_sequence& w) { return (w.flags & PB_SEQ_SWAPPED) != 0; }));
        default: return {};
    }
}

// An error's reason is met by a part of it.
Words reasons_of(const Words& expected, const State& s) {
    Words out;
    for (const auto& [name, reason] : expected) {
        const Known& known = s.requests.at(name);
        const bool part = known.finish == engine::FinishReason::kError && !reason.empty() &&
                          known.stop_reason.find(reason) != std::string::npos;
        out[name] = known.finish == engine::FinishReason::kNone ? kNotEnded : part ? reason : known.stop_reason;
    }
    return out;
}

std::string text(const Number& n) {
    if (n.low == n.high) return n.low == kGone ? "ended" : n.low == kNotCached ? "gone" : std::to_string(n.low);
    if (n.high == Number::kMax) return ">= " + std::to_string(n.low);
    return n.low == 0 ? "<= " + std::to_string(n.high) : std::to_string(n.low) + ".." + std::to_string(n.high);
}
std::string text(TokenId n) { return std::to_string(n); }
std::string text(const std::string& s) { return s; }
std::string text(engine::FinishReason r) { return std::string(engine::name_of(r)); }
std::string text(const std::variant<Number, Names>&);
const std::string& text_of_key(const std::string& key) { return key; }
std::string text_of_key(Subject key) { return subject_info(key).name; }
template <class T>
std::string text(const std::vector<T>& list) {
    std::string out;
    for (const T& item : list) out += (out.empty() ? "" : ", ") + text(item);
    return "[" + out + "]";
}
template <class K, class T>
std::string text(const std::map<K, T>& map) {
    std::string out;
    for (const auto& [key, value] : map) out += (out.empty() ? "" : ", ") + text_of_key(key) + ": " + text(value);
    return "{" + out + "}";
}

std::string text(const BlockList& list) { return text(list.names); }
std::string text(const BlockCounts& blocks) { return text(blocks.counts); }
std::string text(const std::variant<Number, Names>& amount) {
    return std::visit([](const auto& a) { return text(a); }, amount);
}
std::string text(const KvEvents& events) { return text(events.by_kind); }

template <class K>
bool holds(const std::map<K, Number>& expected, const std::map<K, Number>& got) {
    const auto meets = [](const auto& a, const auto& b) { return a.first == b.first && a.second.holds(b.second); };
    return std::ranges::equal(expected, got, meets);
}

}  // namespace

void Tally::add(const engine::StepReport& r) {
    steps += r.work.scheduled_tokens > 0;
    hit_tokens += r.kv.prefix_hit_tokens;
    query_tokens += r.kv.prefix_query_tokens;
    drafted_tokens += r.drafts.drafted_tokens;
    accepted_tokens += r.drafts.accepted_tokens;
    plan_faults += r.calls.plan_faults;
    kv_policy_faults += r.calls.kv_policy_faults;
}

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
        case Subject::kStopReason: return reasons_of(std::get<Words>(expected), s);
        case Subject::kDecoded: {
            Words out;
            for (const auto& [name, ignored] : std::get<Words>(expected)) out[name] = s.requests.at(name).text;
            return out;
        }
        case Subject::kSum:
        case Subject::kCount: {
            Totals out;
            for (const auto& [key, ignored] : std::get<Totals>(expected))
                out[key] = subject == Subject::kSum ? total_of(key, s) : count_of(key, s);
            return out;
        }
        case Subject::kText: {
            Texts out;
            for (const auto& [name, ignored] : std::get<Texts>(expected)) out[name] = s.requests.at(name).output;
            return out;
        }
        case Subject::kFreeBlocks: return uint64_t{s.engine.free_pages};
        case Subject::kCachedBlocks: return uint64_t{s.engine.cached_pages};
        case Subject::kHitTokens: return s.tally.hit_tokens;
        case Subject::kQueryTokens: return s.tally.query_tokens;
        case Subject::kDraftedTokens: return s.tally.drafted_tokens;
        case Subject::kAcceptedTokens: return s.tally.accepted_tokens;
        case Subject::kSteps: return s.tally.steps;
        case Subject::kReferences: {
            BlockCounts out;
            for (const auto& [name, ignored] : std::get<BlockCounts>(expected).counts)
                out.counts[name] = s.blocks.references(name).value_or(kNotCached);
            return out;
        }
        case Subject::kEvictedNext: return BlockList{s.blocks.evicted_next(std::get<BlockList>(expected).names)};
        case Subject::kKvEvents: return s.blocks.events(std::get<KvEvents>(expected));
        case Subject::kPlanFaults: return s.tally.plan_faults;
        case Subject::kKvPolicyFaults: return s.tally.kv_policy_faults;
        case Subject::kPolicy: return s.policy;
        case Subject::kSwapped: {
            Names out;
            for (const pb_sequence& w : s.engine.waiting)
                if (w.flags & PB_SEQ_SWAPPED) out.push_back(s.names.at(w.id));
            return out;
        }
        case Subject::kFreeSwapBlocks: return uint64_t{s.engine.free_swap_pages};
    }
    return {};
}

bool meets(const Value& got, const Value& expected) {
    if (const auto* number = std::get_if<Number>(&expected)) return number->holds(std::get<Number>(got));
    if (const auto* counts = std::get_if<Counts>(&expected)) return holds(*counts, std::get<Counts>(got));
    if (const auto* totals = std::get_if<Totals>(&expected)) return holds(*totals, std::get<Totals>(got));
    if (const auto* blocks = std::get_if<BlockCounts>(&expected))
        return holds(blocks->counts, std::get<BlockCounts>(got).counts);
    if (const auto* events = std::get_if<KvEvents>(&expected)) {
        const auto same = [](const auto& a, const auto& b) {
            const auto* number = std::get_if<Number>(&a.second);
            return number ? number->holds(std::get<Number>(b.second)) : a == b;
        };
        return std::ranges::equal(events->by_kind, std::get<KvEvents>(got).by_kind, same);
    }
    return got == expected;
}

std::string text_of(const Value& value) {
    return std::visit([](const auto& v) { return text(v); }, value);
}

}  // namespace patchbay::scenario
