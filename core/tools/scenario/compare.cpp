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

// Numbers of requests, which each has while it is there, and perhaps at its end (null: not then; before it 0).
struct OfRequest {
    Subject subject;
    uint64_t (*now)(const pb_sequence&);
    uint64_t (*at_end)(const Known&);
};
constexpr OfRequest kOfRequests[] = {
    {Subject::kInFlight, [](const pb_sequence& s) -> uint64_t { return s.in_flight; }, nullptr},
    {Subject::kComputed, [](const pb_sequence& s) -> uint64_t { return s.computed_tokens; }, nullptr},
    {Subject::kDrafts, [](const pb_sequence& s) -> uint64_t { return s.draft_tokens; }, nullptr},
    {Subject::kCachedTokens, [](const pb_sequence& s) -> uint64_t { return s.cached_tokens; },
     [](const Known& k) -> uint64_t { return k.cached_tokens; }},
    {Subject::kPreemptions, [](const pb_sequence& s) -> uint64_t { return s.preemptions; },
     [](const Known& k) -> uint64_t { return k.preemptions; }},
};

const OfRequest* of_request(Subject subject) {
    const OfRequest* const at = std::ranges::find(kOfRequests, subject, &OfRequest::subject);
    return at == std::end(kOfRequests) ? nullptr : at;
}

// Of the requests that are expected.
Counts counts_of(const OfRequest& number, const Counts& expected, const State& state) {
    Counts out;
    for (const auto& [name, ignored] : expected) {
        const Known& known = state.requests.at(name);
        const pb_sequence* s = find(state.engine.running, known.id);
        if (!s) s = find(state.engine.waiting, known.id);
        out[name] = s ? number.now(*s) : number.at_end ? number.at_end(known) : kGone;
    }
    return out;
}

// Over all requests, those that are there and those that have ended.
Number total_of(Subject subject, const State& state) {
    uint64_t sum = 0;
    if (subject == Subject::kScheduled)
        for (const pb_plan_item& i : state.plan) sum += i.tokens;
    const OfRequest* const number = of_request(subject);
    if (!number) return sum;
    for (const auto* list : {&state.engine.running, &state.engine.waiting})
        for (const pb_sequence& s : *list) sum += number->now(s);
    if (number->at_end)
        for (const auto& [name, known] : state.requests) sum += number->at_end(known);
    return sum;
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
        case Subject::kComputed:
        case Subject::kCachedTokens:
        case Subject::kDrafts:
        case Subject::kPreemptions: return counts_of(*of_request(subject), std::get<Counts>(expected), s);
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
