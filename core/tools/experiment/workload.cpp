#include "experiment/workload.hpp"

#include <algorithm>
#include <numeric>

#include "experiment/arrivals.hpp"
#include "experiment/draws.hpp"
#include "experiment/input_files.hpp"

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

}  // namespace

Result<WorkloadSource> WorkloadSource::open(const WorkloadSpec& spec, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            WorkloadLimits limits, uint32_t repeats, uint64_t seed) {
    WorkloadSource s;
    s.spec_ = spec;
    s.limits_ = limits;
    const uint32_t asked = spec.requests.value_or(0);
    const auto needs_tokenizer = [&](const char* what) -> Result<> {
        if (!tokenizer) return fail(std::string("workload: ") + what + " needs a tokenizer, and the model has none");
        return {};
    };
    if (const auto* p = std::get_if<JsonlPrompts>(&spec.prompts)) {
        PB_CHECK(needs_tokenizer("a file of prompts"));
        PB_TRY(const auto texts, read_jsonl_prompts(p->path, p->field));
        for (const std::string& text : texts) {
            s.prompts_.push_back(tokenizer->encode(text));
            if (s.prompts_.back().empty())
                return fail(p->path.string() + ": prompt " + std::to_string(s.prompts_.size()) + " has no tokens");
        }
        s.count_ = asked > 0 ? asked : static_cast<uint32_t>(texts.size());
    } else if (const auto* t = std::get_if<TextPrompts>(&spec.prompts)) {
        PB_CHECK(needs_tokenizer("a text file"));
        PB_TRY(const std::string text, read_text(t->path));
        s.text_ = tokenizer->encode(text);
        s.prompt_lengths_ = std::make_shared<LengthSource>(t->tokens);
        s.count_ = asked;
    } else if (const auto* y = std::get_if<SyntheticPrompts>(&spec.prompts)) {
        s.prompt_lengths_ = std::make_shared<LengthSource>(y->tokens);
        s.count_ = asked;
    } else {
        const auto& trace = std::get<TracePrompts>(spec.prompts);
        PB_TRY(s.trace_, read_azure_trace(trace.path, trace.skip, InputLimits{}.rows));
        const auto rows = static_cast<uint32_t>(s.trace_.size());
        if (asked > rows)
            return fail(trace.path.string() + " has " + count_of(rows, "rows") + ", the workload asks for " +
                        count_of(asked, "requests"));
        auto plan = plan_windows(spec.windows, rows, asked, repeats, seed);
        if (!plan) return fail(trace.path.string() + ": " + plan.error());
        s.windows_ = *std::move(plan);
        s.count_ = s.windows_.rows;
    }
    if (s.count_ == 0) return fail("workload: no requests (give `requests`)");
    if (spec.output_tokens) s.output_lengths_ = std::make_shared<LengthSource>(*spec.output_tokens);
    if (s.prompts_.empty() && s.text_.empty()) {
        for (uint32_t id = 0; id < limits.vocab_size; ++id)
            if (!tokenizer || (id < tokenizer->vocab_size() && !tokenizer->is_special(static_cast<text::TokenId>(id))))
                s.plain_ids_.push_back(static_cast<text::TokenId>(id));
        if (s.plain_ids_.empty()) return fail("workload: the tokenizer has only special tokens");
    }
    return s;
}

std::span<const TraceRow> WorkloadSource::window(uint32_t repeat) const {
    if (trace_.empty()) return {};
    const uint32_t start = repeat < windows_.starts.size() ? windows_.starts[repeat] : 0; // a warm-up has the first
    return std::span(trace_).subspan(start, windows_.rows);
}

std::optional<uint32_t> WorkloadSource::independent() const {
    if (trace_.empty() || windows_.independent == windows_.starts.size()) return std::nullopt;
    return windows_.independent;
}

std::vector<text::TokenId> WorkloadSource::prompt_of(const Draws& draws, const std::vector<uint32_t>& order, uint32_t i,
                                                     uint32_t wanted) const {
    if (!prompts_.empty()) {
        const auto& whole = prompts_[order[i % order.size()]];
        return {whole.begin(), whole.begin() + std::min<size_t>(wanted, whole.size())};
    }
    std::vector<text::TokenId> ids;
    if (!text_.empty()) { // a slice; from the front again where the text ends
        const uint64_t offset = draws.below(Purpose::kOffset, i, text_.size());
        for (uint64_t k = 0; k < wanted; ++k) ids.push_back(text_[(offset + k) % text_.size()]);
        return ids;
    }
    for (uint32_t k = 0; k < wanted; ++k) {
        const uint32_t word = draws.bits(Purpose::kPromptIds, i, k / 4)[k % 4];
        ids.push_back(plain_ids_[uint64_t{word} * plain_ids_.size() >> 32]);
    }
    return ids;
}

namespace {

// Which of the shares holds u of (0, 1); 0 where there are none.
uint32_t chosen(const std::vector<double>& shares, double u) {
    double left = u * std::accumulate(shares.begin(), shares.end(), 0.0);
    uint32_t i = 0;
    while (i + 1 < shares.size() && left > shares[i]) left -= shares[i++];
    return i;
}

}  // namespace

Workload WorkloadSource::repeat(uint64_t seed, uint32_t repeat) const {
    const Draws draws(seed, repeat);
    const auto* jsonl = std::get_if<JsonlPrompts>(&spec_.prompts);
    const auto files = static_cast<uint32_t>(prompts_.size());
    std::vector<uint32_t> order;
    if (jsonl && jsonl->order == Order::kShuffled) order = draws.permutation(Purpose::kPromptChoice, files);
    else for (uint32_t i = 0; i < files; ++i) order.push_back(i);

    Workload out;
    const auto rows = window(repeat);
    const auto times = arrival_times(spec_.arrivals, count_, draws, rows);
    for (uint32_t i = 0; i < count_; ++i) {
        uint32_t prompt = 0, output = 0;
        if (!prompts_.empty()) prompt = static_cast<uint32_t>(prompts_[order[i % order.size()]].size());
        else if (prompt_lengths_) prompt = prompt_lengths_->draw(draws, Purpose::kPromptLength, i);
        else prompt = rows[i].prompt_tokens;
        output = output_lengths_ ? output_lengths_->draw(draws, Purpose::kOutputLength, i) : rows[i].output_tokens;
        prompt = std::max(1u, prompt);
        output = std::max(1u, output);
        fit(prompt, output, spec_, limits_.max_model_len, out.clipped);
        PlannedRequest r;
        r.prompt = prompt_of(draws, order, i, prompt);
        r.sampling = spec_.sampling;
        r.sampling.max_tokens = output;
        r.output_tokens = spec_.ignore_eos ? output : 0;
        r.sampling.ignore_eos = spec_.ignore_eos;
        r.sampling.seed = draws.word(Purpose::kSampling, i);
        r.arrival_ns = times[i];
        r.tenant = spec_.tenants.empty() ? 0 : 1 + chosen(spec_.tenants, draws.uniform(Purpose::kTenant, i));
        r.priority = static_cast<int32_t>(chosen(spec_.priorities, draws.uniform(Purpose::kPriority, i)));
        const Deadlines& d = spec_.deadline;
        const double after_s = d.min_s + (d.max_s - d.min_s) * draws.uniform(Purpose::kDeadline, i);
        if (d.max_s > 0) r.deadline_ns = r.arrival_ns + static_cast<uint64_t>(1e9 * after_s);
        out.requests.push_back(std::move(r));
    }
    return out;
}

std::vector<PlannedRequest> WorkloadSource::warmup(uint64_t seed, uint32_t count) const {
    if (count == 0) return {};
    WorkloadSource source = *this;
    source.spec_.arrivals = AllAtOnce{};
    if (source.trace_.empty()) source.count_ = count;
    std::vector<PlannedRequest> requests;
    while (requests.size() < count) // a trace may have fewer rows
        for (PlannedRequest& r : source.repeat(seed, kWarmupRepeat).requests)
            if (requests.size() < count) requests.push_back(std::move(r));
    return requests;
}

}  // namespace patchbay::experiment
