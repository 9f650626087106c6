#include "experiment/workload.hpp"

#include <algorithm>
#include <numeric>

#include "base/refusals.hpp"
#include "experiment/arrivals.hpp"
#include "experiment/draws.hpp"
#include "experiment/sessions.hpp"

namespace patchbay::experiment {
namespace {

constexpr uint32_t kWarmupRepeat = ~uint32_t{0}; // its draws are its own

std::string count_of(size_t n, const char* what) { return std::to_string(n) + " " + what; }

// Cuts a prompt that is longer than the file says, and what the model does not hold: first the prompt, to no less than
// half of the model's length, then the output.
void fit(uint32_t& prompt, uint32_t& output, const WorkloadSpec& spec, uint32_t max_model_len, Clipping& clipped) {
    const uint32_t prompt_before = prompt;
    if (spec.max_prompt_tokens > 0) prompt = std::min(prompt, spec.max_prompt_tokens);
    if (uint64_t{prompt} + output > max_model_len) {
        const uint32_t half = std::max(1u, max_model_len / 2);
        const uint32_t beside_output = max_model_len > output ? max_model_len - output : 0;
        prompt = std::min(prompt, std::max(half, beside_output));
        output = std::min(output, max_model_len - prompt);
    }
    clipped.prompts += prompt < prompt_before;
    clipped.prompt_tokens += prompt_before - prompt;
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
    std::vector<uint64_t> times(turns.size()), of_trace;
    const bool by_trace = std::holds_alternative<TraceArrivals>(spec.arrivals);
    std::vector<uint32_t> first;
    for (uint32_t i = 0; i < turns.size(); ++i) {
        if (turns[i].follows) continue;
        first.push_back(i);
        if (by_trace) of_trace.push_back(rows[i].at_ns);
    }
    const auto arrivals = arrival_times(spec.arrivals, static_cast<uint32_t>(first.size()), draws, of_trace);
    for (size_t k = 0; k < first.size(); ++k) times[first[k]] = arrivals[k];
    return times;
}

}  // namespace

Result<WorkloadSource> WorkloadSource::open(const WorkloadSpec& spec, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            WorkloadLimits limits, uint32_t repeats, uint64_t seed) {
    WorkloadSource s;
    s.spec_ = spec;
    s.limits_ = limits;
    s.repeats_ = repeats;
    const uint32_t asked = spec.requests.value_or(0);
    PB_TRY(s.prompts_, PromptSource::open(spec, tokenizer.get(), limits.vocab_size));
    s.count_ = asked > 0 ? asked : s.prompts_.prompts();
    if (const Trace* trace = s.prompts_.trace()) {
        const std::string path = std::get<TracePrompts>(spec.prompts).path.string();
        const auto rows = static_cast<uint32_t>(trace->rows.size());
        if (asked > rows)
            return invalid(path + " has " + count_of(rows, "rows") + ", the workload needs " +
                           count_of(asked, "requests"));
        if (!trace->timed && std::holds_alternative<TraceArrivals>(spec.arrivals))
            return invalid(path +
                           " has no times; say when requests come with `arrivals`, for example poisson: {rate: 2}");
        auto plan = plan_windows(spec.windows, rows, asked, repeats, seed);
        if (!plan) return prefixed(path, plan.failure());
        s.windows_ = *std::move(plan);
        s.count_ = s.windows_.rows;
    }
    if (s.count_ == 0) return invalid("workload: no requests (give `requests`)");
    if (spec.output_tokens) s.output_lengths_ = std::make_shared<LengthSource>(*spec.output_tokens);
    if (spec.max_tokens) s.max_tokens_ = std::make_shared<LengthSource>(*spec.max_tokens);
    return s;
}

std::span<const TraceRow> WorkloadSource::window(uint32_t repeat) const {
    const Trace* trace = prompts_.trace();
    if (!trace) return {};
    const uint32_t start = repeat < windows_.starts.size() ? windows_.starts[repeat] : 0;
    return std::span(trace->rows).subspan(start, windows_.rows);
}

std::optional<WindowPlan> WorkloadSource::shared_windows() const {
    if (!prompts_.trace() || windows_.independent == windows_.starts.size()) return std::nullopt;
    return windows_;
}

uint32_t WorkloadSource::shared_prompts(uint32_t repeats) const {
    const auto* given = std::get_if<JsonlPrompts>(&spec_.prompts);
    if (!given || repeats < 2) return 0;
    const uint32_t all = prompts_.prompts();
    if (given->order == Order::kFile) return std::min(count_, all); // each repeat begins with the first one
    return uint64_t{count_} * repeats > all ? all : 0;
}

WorkloadSource::Plan::Plan(const WorkloadSource& source, uint64_t seed, uint32_t repeat)
    : source_(&source), draws_(seed, repeat), rows_(source.window(repeat)),
      order_(source.prompts_.order(seed, uint64_t{source.count_} * repeat)),
      turns_(plan_turns(source.spec_, draws_, rows_, source.count_)),
      times_(times_of(source.spec_, draws_, rows_, turns_)) {
    for (uint32_t i = 0; i < source.count_; ++i) shapes_.push_back(shape_of(i));
}

WorkloadSource::Plan::Shape WorkloadSource::Plan::shape_of(uint32_t i) {
    const WorkloadSpec& spec = source_->spec_;
    const uint32_t holds = source_->limits_.max_model_len;
    const Turn& turn = turns_[i];
    Shape s;
    const uint32_t wanted = std::max(1u, !source_->output_lengths_ && row(i)
                                             ? row(i)->output_tokens
                                             : source_->output_lengths_->draw(draws_, Purpose::kOutputLength, i));
    s.output = spec.max_output_tokens > 0 ? std::min(wanted, spec.max_output_tokens) : wanted;
    s.tokens = std::max(1u, source_->prompts_.length(draws_, order_, i, row(i)));
    if (turn.continues) {
        const Shape& previous = shapes_[*turn.follows];
        s.before = previous.tokens + previous.output + (previous.continues ? previous.before : 0);
    }
    const uint64_t max_prompt = spec.max_prompt_tokens > 0 ? spec.max_prompt_tokens : holds;
    s.continues = turn.continues && uint64_t{s.before} + s.tokens <= max_prompt &&
                  uint64_t{s.before} + s.tokens + s.output <= holds;
    clipped_.histories += turn.continues && !s.continues;
    if (!turn.continues) s.prefix = source_->prompts_.prefix_length(draws_, turn.session);
    s.tokens += s.prefix;
    if (!s.continues) fit(s.tokens, s.output, spec, holds, clipped_);
    clipped_.outputs += s.output < wanted;
    clipped_.output_tokens += wanted - s.output;
    s.prefix = std::min(s.prefix, s.tokens);
    return s;
}

// What was said before it, known beforehand and the same for all variants.
void WorkloadSource::Plan::add_history(uint32_t i, TokenIds& prompt) const {
    const uint32_t before = *turns_[i].follows;
    TokenIds whole = make(before).prompt;
    const TokenIds answer = source_->prompts_.answer(draws_, before, row(before), shapes_[before].output);
    whole.insert(whole.end(), answer.begin(), answer.end());
    whole.insert(whole.end(), prompt.begin(), prompt.end());
    prompt = std::move(whole);
}

void WorkloadSource::Plan::set_lengths(uint32_t i, PlannedRequest& r) const {
    const WorkloadSpec& spec = source_->spec_;
    const Shape& s = shapes_[i];
    const uint32_t holds = source_->limits_.max_model_len, whole = s.tokens + (s.continues ? s.before : 0);
    const uint32_t declared = source_->max_tokens_ ? source_->max_tokens_->draw(draws_, Purpose::kDeclared, i)
                              : row(i)             ? row(i)->max_tokens
                                                   : 0;
    r.sampling = spec.sampling;
    r.sampling.max_tokens = std::clamp(declared, s.output, std::max(s.output, holds - whole));
    if (declared > 0) r.ends_after = s.output;
    // How long the output will be is not known where it may end by itself; nor does its sender know where it declares
    // another length.
    r.output_tokens = spec.ignore_eos && r.ends_after == 0 ? s.output : 0;
    r.sampling.ignore_eos = spec.ignore_eos;
    r.sampling.seed = draws_.word(Purpose::kSampling, i);
}

void WorkloadSource::Plan::set_class(uint32_t i, PlannedRequest& r) const {
    const WorkloadSpec& spec = source_->spec_;
    if (row(i)) {
        r.tenant = row(i)->tenant;
        r.priority = row(i)->priority;
        r.label = source_->prompts_.trace()->labels[row(i)->label];
    }
    const uint32_t session = turns_[i].session;
    if (!spec.tenants.empty()) r.tenant = 1 + chosen(spec.tenants, draws_.uniform(Purpose::kTenant, session));
    if (!spec.priorities.empty())
        r.priority = static_cast<int32_t>(chosen(spec.priorities, draws_.uniform(Purpose::kPriority, session)));
    const Deadlines& d = spec.deadline;
    const double after_s = d.min_s + (d.max_s - d.min_s) * draws_.uniform(Purpose::kDeadline, i);
    if (d.max_s > 0) r.deadline_ns = r.arrival_ns + static_cast<uint64_t>(1e9 * after_s);
}

PlannedRequest WorkloadSource::Plan::make(uint32_t i) const {
    const Shape& s = shapes_[i];
    PlannedRequest r;
    if (s.prefix > 0) {
        r.prompt = source_->prompts_.prefix(draws_, turns_[i].session);
        r.prompt.resize(s.prefix);
    }
    const TokenIds own = source_->prompts_.prompt(draws_, order_, i, row(i), s.tokens - s.prefix);
    r.prompt.insert(r.prompt.end(), own.begin(), own.end());
    r.follows = turns_[i].follows;
    r.think_ns = turns_[i].think_ns;
    r.continues = s.continues;
    if (s.continues && source_->spec_.sessions.history == History::kRecorded) {
        add_history(i, r.prompt);
        r.continues = false;
    }
    set_lengths(i, r);
    r.arrival_ns = times_[i];
    set_class(i, r);
    return r;
}

WorkloadSource::Plan WorkloadSource::plan(uint64_t seed, uint32_t repeat) const { return Plan(*this, seed, repeat); }

Workload WorkloadSource::repeat(uint64_t seed, uint32_t repeat) const {
    const Plan all = plan(seed, repeat);
    Workload out;
    for (uint32_t i = 0; i < all.size(); ++i) out.requests.push_back(all.make(i));
    out.clipped = all.clipped();
    return out;
}

std::vector<bool> WorkloadSource::used(uint64_t seed) const {
    if (const Trace* trace = prompts_.trace()) {
        std::vector<bool> out(trace->rows.size());
        for (const uint32_t start : windows_.starts)
            std::fill_n(out.begin() + start, windows_.rows, true);
        return out;
    }
    std::vector<bool> out(prompts_.prompts());
    for (uint32_t r = 0; r < repeats_; ++r) {
        const std::vector<uint32_t> order = prompts_.order(seed, uint64_t{count_} * r);
        for (size_t i = 0; i < std::min<size_t>(count_, order.size()); ++i) out[order[i]] = true;
    }
    return out;
}

std::vector<PlannedRequest> WorkloadSource::warmup(uint64_t seed, uint32_t count) const {
    if (count == 0) return {};
    WorkloadSource source = *this;
    source.prompts_.leave_unused(used(seed), count);
    if (const Trace* trace = source.prompts_.trace()) {
        source.windows_ = {.rows = static_cast<uint32_t>(trace->rows.size())};
        source.count_ = source.windows_.rows;
    }
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
