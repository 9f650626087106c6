#include "experiment/workload.hpp"

#include <algorithm>
#include <numeric>

#include "experiment/arrivals.hpp"
#include "experiment/draws.hpp"
#include "experiment/sessions.hpp"

namespace patchbay::experiment {
namespace {

constexpr uint32_t kWarmupRepeat = ~uint32_t{0}; // its draws are its own

std::string count_of(size_t n, const char* what) { return std::to_string(n) + " " + what; }

// Cuts what is longer than the file says or the model holds: first the prompt, to no less than half of the model's
// length, then the output.
void fit(uint32_t& prompt, uint32_t& output, const WorkloadSpec& spec, uint32_t max_model_len, Clipping& clipped) {
    const uint32_t prompt_before = prompt, output_before = output;
    if (spec.max_prompt_tokens > 0) prompt = std::min(prompt, spec.max_prompt_tokens);
    if (spec.max_output_tokens > 0) output = std::min(output, spec.max_output_tokens);
    if (uint64_t{prompt} + output > max_model_len) {
        const uint32_t half = std::max(1u, max_model_len / 2);
        const uint32_t beside_output = max_model_len > output ? max_model_len - output : 0;
        prompt = std::min(prompt, std::max(half, beside_output));
        output = std::min(output, max_model_len - prompt);
    }
    clipped.prompts += prompt < prompt_before;
    clipped.prompt_tokens += prompt_before - prompt;
    clipped.outputs += output < output_before;
    clipped.output_tokens += output_before - output;
}

// Which of the shares holds u of (0, 1); 0 where there are none.
uint32_t chosen(const std::vector<double>& shares, double u) {
    double left = u * std::accumulate(shares.begin(), shares.end(), 0.0);
    uint32_t i = 0;
    while (i + 1 < shares.size() && left > shares[i]) left -= shares[i++];
    return i;
}

// Arrivals of the requests that follow none, 0 of the others.
std::vector<uint64_t> times_of(const WorkloadSpec& spec, const Draws& draws, std::span<const TraceRow> rows,
                               const std::vector<Turn>& turns) {
    if (std::holds_alternative<TraceArrivals>(spec.arrivals))
        return arrival_times(spec.arrivals, static_cast<uint32_t>(turns.size()), draws, rows);
    std::vector<uint64_t> times(turns.size());
    std::vector<uint32_t> first;
    for (uint32_t i = 0; i < turns.size(); ++i)
        if (!turns[i].follows) first.push_back(i);
    const auto arrivals = arrival_times(spec.arrivals, static_cast<uint32_t>(first.size()), draws, {});
    for (size_t k = 0; k < first.size(); ++k) times[first[k]] = arrivals[k];
    return times;
}

}  // namespace

Result<WorkloadSource> WorkloadSource::open(const WorkloadSpec& spec, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            WorkloadLimits limits, uint32_t repeats, uint64_t seed) {
    WorkloadSource s;
    s.spec_ = spec;
    s.limits_ = limits;
    const uint32_t asked = spec.requests.value_or(0);
    PB_TRY(s.prompts_, PromptSource::open(spec, tokenizer.get(), limits.vocab_size));
    s.count_ = asked > 0 ? asked : s.prompts_.prompts();
    if (const Trace* trace = s.prompts_.trace()) {
        const std::string path = std::get<TracePrompts>(spec.prompts).path.string();
        const auto rows = static_cast<uint32_t>(trace->rows.size());
        if (asked > rows)
            return fail(path + " has " + count_of(rows, "rows") + ", the workload needs " +
                        count_of(asked, "requests"));
        if (!trace->timed && std::holds_alternative<TraceArrivals>(spec.arrivals))
            return fail(path + " has no times; say when requests come with `arrivals`, for example poisson: {rate: 2}");
        auto plan = plan_windows(spec.windows, rows, asked, repeats, seed);
        if (!plan) return fail(path + ": " + plan.error());
        s.windows_ = *std::move(plan);
        s.count_ = s.windows_.rows;
    }
    if (s.count_ == 0) return fail("workload: no requests (give `requests`)");
    if (spec.output_tokens) s.output_lengths_ = std::make_shared<LengthSource>(*spec.output_tokens);
    if (spec.max_tokens) s.max_tokens_ = std::make_shared<LengthSource>(*spec.max_tokens);
    return s;
}

std::span<const TraceRow> WorkloadSource::window(uint32_t repeat) const {
    const Trace* trace = prompts_.trace();
    if (!trace) return {};
    const uint32_t start = repeat < windows_.starts.size() ? windows_.starts[repeat] : 0; // a warm-up has the first
    return std::span(trace->rows).subspan(start, windows_.rows);
}

std::optional<uint32_t> WorkloadSource::independent() const {
    if (!prompts_.trace() || windows_.independent == windows_.starts.size()) return std::nullopt;
    return windows_.independent;
}

struct WorkloadSource::Plan { // of a repeat
    Draws draws;
    std::span<const TraceRow> rows;
    std::vector<uint32_t> order;
    std::vector<Turn> turns;
    std::vector<uint64_t> times;
    std::vector<uint32_t> totals; // prompt and output tokens of each request, with what it continues
    const TraceRow* row(uint32_t i) const { return rows.empty() ? nullptr : &rows[i]; }
};

PlannedRequest WorkloadSource::planned(const Plan& plan, uint32_t i, Workload& out) const {
    const Draws& draws = plan.draws;
    const TraceRow* row = plan.row(i);
    const Turn& turn = plan.turns[i];
    const bool has_output_length = !output_lengths_ && row;
    uint32_t output = has_output_length ? row->output_tokens : output_lengths_->draw(draws, Purpose::kOutputLength, i);
    output = std::max(1u, output);
    uint32_t tokens = std::max(1u, prompts_.length(draws, plan.order, i, row));
    const uint32_t before = turn.continues ? plan.totals[*turn.follows] : 0;
    const uint64_t most = spec_.max_prompt_tokens > 0 ? spec_.max_prompt_tokens : limits_.max_model_len;
    const bool continues = turn.continues && uint64_t{before} + tokens <= most &&
                           uint64_t{before} + tokens + output <= limits_.max_model_len;
    out.clipped.histories += turn.continues && !continues;
    TokenIds prefix = turn.continues ? TokenIds() : prompts_.prefix(draws, turn.session);
    const auto of_prefix = static_cast<uint32_t>(prefix.size());
    tokens += of_prefix;
    if (!continues) fit(tokens, output, spec_, limits_.max_model_len, out.clipped);
    PlannedRequest r;
    r.prompt = std::move(prefix);
    r.prompt.resize(std::min(of_prefix, tokens));
    const TokenIds own = prompts_.prompt(draws, plan.order, i, row, tokens - static_cast<uint32_t>(r.prompt.size()));
    r.prompt.insert(r.prompt.end(), own.begin(), own.end());
    r.follows = turn.follows;
    r.think_ns = turn.think_ns;
    r.continues = continues;
    if (continues && spec_.sessions.history == History::kRecorded) { // known beforehand, and the same for all variants
        const PlannedRequest& previous = out.requests[*turn.follows];
        const TokenIds answer = prompts_.answer(draws, *turn.follows, plan.row(*turn.follows), previous.output_tokens);
        TokenIds whole = previous.prompt;
        whole.insert(whole.end(), answer.begin(), answer.end());
        whole.insert(whole.end(), r.prompt.begin(), r.prompt.end());
        r.prompt = std::move(whole);
        r.continues = false;
    }
    const uint32_t whole = tokens + (continues ? before : 0);
    const uint32_t declared = max_tokens_ ? max_tokens_->draw(draws, Purpose::kDeclared, i) : row ? row->max_tokens : 0;
    r.sampling = spec_.sampling;
    r.sampling.max_tokens = std::clamp(declared, output, std::max(output, limits_.max_model_len - whole));
    if (declared > 0 && spec_.ignore_eos) r.ends_after = output;
    r.output_tokens = output;
    r.sampling.ignore_eos = spec_.ignore_eos;
    r.sampling.seed = draws.word(Purpose::kSampling, i);
    r.arrival_ns = plan.times[i];
    r.tenant = row ? row->tenant : 0;
    r.priority = row ? row->priority : 0;
    if (row) r.label = prompts_.trace()->labels[row->label];
    if (!spec_.tenants.empty()) r.tenant = 1 + chosen(spec_.tenants, draws.uniform(Purpose::kTenant, i));
    if (!spec_.priorities.empty())
        r.priority = static_cast<int32_t>(chosen(spec_.priorities, draws.uniform(Purpose::kPriority, i)));
    const Deadlines& d = spec_.deadline;
    const double after_s = d.min_s + (d.max_s - d.min_s) * draws.uniform(Purpose::kDeadline, i);
    if (d.max_s > 0) r.deadline_ns = r.arrival_ns + static_cast<uint64_t>(1e9 * after_s);
    return r;
}

Workload WorkloadSource::repeat(uint64_t seed, uint32_t repeat) const {
    Plan plan{Draws(seed, repeat), window(repeat), {}, {}, {}, std::vector<uint32_t>(count_)};
    plan.order = prompts_.order(plan.draws);
    plan.turns = plan_turns(spec_, plan.draws, plan.rows, count_);
    plan.times = times_of(spec_, plan.draws, plan.rows, plan.turns);
    Workload out;
    for (uint32_t i = 0; i < count_; ++i) {
        PlannedRequest r = planned(plan, i, out);
        plan.totals[i] = static_cast<uint32_t>(r.prompt.size()) + r.output_tokens +
                         (r.continues ? plan.totals[*r.follows] : 0);
        out.requests.push_back(std::move(r));
    }
    if (!spec_.ignore_eos) // how long outputs will be is not known
        for (PlannedRequest& r : out.requests) r.output_tokens = 0;
    for (PlannedRequest& r : out.requests)
        if (r.ends_after > 0) r.output_tokens = 0; // nor does its sender know it
    return out;
}

std::vector<PlannedRequest> WorkloadSource::warmup(uint64_t seed, uint32_t count) const {
    if (count == 0) return {};
    WorkloadSource source = *this;
    source.spec_.arrivals = AllAtOnce{};
    source.spec_.sessions.history = History::kRecorded; // so that none has to wait for another
    if (!source.prompts_.trace()) source.count_ = count;
    std::vector<PlannedRequest> requests;
    while (requests.size() < count) // a trace may have fewer rows
        for (PlannedRequest& r : source.repeat(seed, kWarmupRepeat).requests) {
            if (requests.size() == count) break;
            r.follows.reset();
            r.deadline_ns = r.deadline_ns > r.arrival_ns ? r.deadline_ns - r.arrival_ns : 0;
            r.arrival_ns = 0;
            requests.push_back(std::move(r));
        }
    return requests;
}

}  // namespace patchbay::experiment
