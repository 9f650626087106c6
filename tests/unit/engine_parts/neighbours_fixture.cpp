// Compiled once for all tests of this folder: making the parts, and what a test's policies and executor do.
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing {

// ---- policies ----

const pb_component kFakeScheduler =
    detail::component<FakeScheduler, FakeScheduler>(PB_SCHEDULER, PB_SCHEDULER_REVISION, {"fake", "1.0.0", "plays"});
const pb_component kFakeSampler = patchbay::sampler<FakeSampler>({"fake", "1.0.0", "plays"});
const pb_component kFakeProposer = patchbay::proposer<FakeProposer>({"fake", "1.0.0", "plays"});

// ---- sequences, and an executor without a model ----

std::unique_ptr<Sequence> sequence(RequestId id, uint32_t prompt_tokens, SamplingParams sampling) {
    Request request;
    request.prompt.resize(prompt_tokens);
    std::iota(request.prompt.begin(), request.prompt.end(), static_cast<TokenId>(100 * id));
    request.sampling = std::move(sampling);
    auto out = std::make_unique<Sequence>(id, std::make_shared<Request>(std::move(request)));
    out->tokens = out->request->prompt;
    out->prompt_count = prompt_tokens;
    out->sampling.params = wire_params(out->request->sampling, out->sampling.bias);
    out->output.delta.id = id;
    return out;
}

Request& request_of(const Sequence& s) { return const_cast<Request&>(*s.request); } // it was made above, not const

FakeExecutor::FakeExecutor() : token([](const pb_sample_row& row) { return static_cast<int32_t>(row.position); }) {}
FakeExecutor::~FakeExecutor() = default;

Result<> FakeExecutor::submit(const execution::StepInput& in) {
    if (!fails.empty()) return fail(std::exchange(fails, ""));
    const auto* rows = static_cast<const pb_sample_row*>(in.samples.rows);
    steps_.push_back({});
    for (uint32_t i = 0; i < in.samples.row_count; ++i) steps_.back().push_back(token(rows[i]));
    if (in.batch.tokens() > 0) tokens_of_steps.push_back(in.batch.tokens());
    copied.insert(copied.end(), in.copies.begin(), in.copies.end());
    submitted += 1;
    max_in_flight = std::max(max_in_flight, steps_.size());
    return {};
}

Result<execution::StepOutput> FakeExecutor::wait(std::span<const execution::RowPath>) {
    if (!wait_fails.empty()) return fail(std::exchange(wait_fails, ""));
    sampled_ = std::move(steps_.front());
    steps_.pop_front();
    logprobs_.assign(sampled_.size(), 0);
    execution::StepOutput out;
    out.sampled = {sampled_, {}, logprobs_, {}, 0, 0};
    out.is_sampled = true;
    return out;
}

void FakeExecutor::cancel() {
    steps_.clear();
    cancels += 1;
}

Result<runner::SampledRows> FakeExecutor::sample(std::span<const float>, const runner::SampleCall&) {
    return fail("there are no logits");
}

// ---- the queue ----

QueueNeighbours::QueueNeighbours(World w)
    : settings(std::move(w.settings)), tokenizer(std::move(w.tokenizer)),
      kv(w.blocks, settings.block_size, w.caching, "model", std::move(w.groups), w.slots),
      draft_kv(w.has_draft_model) {
    context.step = 1;
}
QueueNeighbours::~QueueNeighbours() = default;

Sequence& QueueNeighbours::wait(std::unique_ptr<Sequence> made) {
    Sequence& s = sequences.add(std::move(made));
    s.kv.salt = {};
    admission.leave(s);
    admission.put_last(s);
    return s;
}

Sequence& QueueNeighbours::wait(uint32_t prompt_tokens, SamplingParams sampling) {
    return wait(sequence(next_id++, prompt_tokens, std::move(sampling)));
}

Sequence& QueueNeighbours::run(uint32_t prompt_tokens, uint32_t computed, SamplingParams sampling) {
    Sequence& s = wait(prompt_tokens, std::move(sampling));
    admission.leave(s);
    sequences.run(s);
    if (!kv.tables().grow(s.kv.table, computed)) throw std::runtime_error("there are not enough pages");
    s.computed = computed;
    return s;
}

std::vector<Sequence*> QueueNeighbours::add_siblings(uint32_t count, uint32_t prompt_tokens) {
    SamplingParams p;
    p.n = count;
    Sequence& first = wait(prompt_tokens, p);
    std::vector<Sequence*> all = {&first};
    for (uint32_t i = 1; i < count; ++i) {
        auto made = sequence(next_id++, prompt_tokens, p);
        made->tokens = first.tokens;
        made->group = first.id;
        made->index = i;
        made->place = Place::kHeld;
        all.push_back(&sequences.add(std::move(made)));
    }
    siblings.add(all);
    siblings.hold(first);
    return all;
}

std::vector<RequestId> QueueNeighbours::waiting() const {
    std::vector<RequestId> out;
    for (const pb_sequence& r : sequences.waiting().records()) out.push_back(r.id);
    return out;
}

// ---- rows ----

RowNeighbours::RowNeighbours(World w) : QueueNeighbours(std::move(w)) {}
RowNeighbours::~RowNeighbours() = default;

Sequence& RowNeighbours::decode(uint32_t prompt_tokens, std::vector<TokenId> drafted, SamplingParams sampling) {
    Sequence& s = run(prompt_tokens, prompt_tokens, std::move(sampling));
    s.tokens.push_back(7);
    s.tokens.insert(s.tokens.end(), drafted.begin(), drafted.end());
    s.drafts = static_cast<uint32_t>(drafted.size());
    const auto size = static_cast<uint32_t>(s.tokens.size());
    if (!kv.tables().grow(s.kv.table, size)) throw std::runtime_error("too few pages");
    return s;
}

// ---- the end of a step ----

FakeDrafting::~FakeDrafting() {
    for (auto& s : lingering) kv_.tables().release(s->kv.table);
}

EndingNeighbours::EndingNeighbours(World w) : RowNeighbours(std::move(w)) {}
EndingNeighbours::~EndingNeighbours() = default;

// ---- steps and swaps ----

void plan_all(const pb_scheduler_in& in, pb_scheduler_out& out) {
    const auto plan = [&](std::span<const pb_sequence> shown) {
        for (const pb_sequence& s : shown) {
            const uint32_t known = s.prompt_tokens + s.output_tokens + s.draft_tokens;
            const uint32_t left = known - s.computed_tokens - s.in_flight;
            if (left > 0 && out.item_count < out.item_capacity) out.items[out.item_count++] = {s.id, left, 0};
        }
    };
    plan({in.running, in.running_count});
    plan({in.waiting, in.waiting_count});
}

StepNeighbours::StepNeighbours(World w) : EndingNeighbours(std::move(w)) {
    scheduler.connect(view);
    sampler.connect(executor, verification);
}
StepNeighbours::~StepNeighbours() = default;

FakeSwapPort::FakeSwapPort(const Clock& clock, StepContext& context, SwapJournal& journal, const char* kind)
    : context_(context), journal_(journal), kind_(kind), slot_(kind, host::UnreadState::kStartsEmpty, clock) {
    install<FakeSampler>(slot_, kFakeSampler);
}
FakeSwapPort::~FakeSwapPort() = default;

std::shared_ptr<host::Swap> FakeSwapPort::post() {
    auto swap = slot_.line().prepare(play<FakeSampler>(kFakeSampler).component, named(kind_, "next"));
    slot_.line().post(swap);
    return swap;
}

bool FakeSwapPort::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    journal_.note(slot_.roll_back(context_.step, phase, why));
    rolled_back += 1;
    return true;
}

}  // namespace patchbay::engine::testing
