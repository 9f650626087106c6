#include "engine/speculation/draft_model.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/refusals.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "host/runner_rules.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {
namespace {

constexpr const char* kNoSize = "a struct without its struct_size";

}  // namespace

DraftModel::DraftModel(const DraftLoad::Context& context) : load_(context) {
    service_ = {sizeof(pb_runner), PB_RUNNER_REVISION, this,
                [](void* ctx, const pb_runner_load* what, pb_runner_facts* facts, pb_str* why) {
                    auto& self = *static_cast<DraftModel*>(ctx);
                    if (!has_size(*what) || !has_size(*facts)) return answer(self, invalid(kNoSize), why);
                    return answer(self, self.load_.load(*Whole(what), *facts), why);
                },
                [](void* ctx, pb_runner_batch* batch, pb_str* why) {
                    auto& self = *static_cast<DraftModel*>(ctx);
                    if (!has_size(*batch)) return answer(self, invalid(kNoSize), why);
                    WholeInOut whole(batch);
                    return answer(self, self.forward(*whole), why);
                }};
}

pb_status DraftModel::answer(DraftModel& self, const Result<>& done, pb_str* why) {
    if (done) return PB_OK;
    self.why_ = done.error();
    *why = {self.why_.data(), self.why_.size()};
    return PB_INVALID;
}

void DraftModel::start(const Parts& parts) {
    started_.emplace(parts, load_.form());
    load_.give();
}

// ---- steps ----

uint32_t DraftModel::make_room(Sequence& s, uint32_t count, size_t running) {
    const uint32_t confirmed = s.confirmed(), last = load_.form().facts.max_position;
    if (!keeps_kv()) return count;
    if (started_->parts.draft_kv.of(s).lost || confirmed > last) return 0;
    count = std::min(count, last - confirmed + 1); // the last draft is not computed
    kv::KvCache& kv = started_->parts.kv;
    const uint32_t there = kv.shape().capacity(s.kv.table), size = kv.shape().block_size();
    if (confirmed + count > there) {
        const uint64_t groups = kv.shape().windows().size(), left = running * groups, free = kv.pool().free();
        const uint64_t blocks = free > left ? (free - left) / groups : 0;
        const auto reached = static_cast<uint32_t>(std::min<uint64_t>(confirmed + count, there + blocks * size));
        count = reached > confirmed ? reached - confirmed : 0;
        if (count > 0 && !kv.tables().grow(s.kv.table, confirmed + count)) return 0;
    }
    return count;
}

void DraftModel::begin(std::span<const Row> rows, std::vector<Sequence*> all) {
    turns_.begin(rows, std::move(all));
    started_->spans.begin(turns_.all());
    work_ = {};
    in_propose_ = true;
}

Result<> DraftModel::end() {
    in_propose_ = false;
    Result<> done;
    if (!started_->spans.followed()) {
        turns_.ask_nothing();
        started_->spans.plan(turns_);
        started_->sampling.begin_without_rows();
        if (const auto passed = run_pass(); !passed) done = passed.failure();
    }
    started_->spans.end(turns_.all());
    return done;
}

uint32_t DraftModel::computed_by_both(const Sequence& s) const {
    if (!keeps_kv()) return s.computed;
    const DraftKv& d = started_->parts.draft_kv.of(s);
    const bool is_left = d.lost || d.computed >= load_.form().facts.max_position;
    return is_left ? s.computed : std::min(s.computed, d.computed);
}

Result<> DraftModel::forward(pb_runner_batch& b) {
    if (!in_propose_) return invalid("a model is run in propose() only");
    const DraftForm& form = load_.form();
    PB_CHECK(host::check_batch(b, {kDraftModel, form.facts.vocab_size,
                                   [this](uint64_t id) { return turns_.max_drafts(id); }}));
    std::fill_n(b.tokens, b.row_count, -1);
    if (b.logprobs) std::fill_n(b.logprobs, b.row_count, 0.0f);
    if (b.top_count > 0) {
        std::fill_n(b.top_tokens, size_t{b.row_count} * b.top_count, -1);
        std::fill_n(b.top_logprobs, size_t{b.row_count} * b.top_count, 0.0f);
    }
    if (form.is_head()) PB_CHECK(check_head_pass(b));
    auto& [parts, spans, sampling] = *started_;
    turns_.ask(b);
    spans.plan(turns_);
    sampling.begin(b, spans.all());
    const auto done = run_pass();
    if (done && form.computes) sampling.hand_out(*done, b);
    if (done && !form.computes) sampling.make_up(spans.all(), b);
    turns_.drop_drafts();
    return done ? Result<>() : done.failure();
}

Result<> DraftModel::check_head_pass(const pb_runner_batch& b) const {
    const uint32_t max_passes = started_->parts.passes.max_head_passes();
    if (work_.passes >= max_passes)
        return invalid("more than " + std::to_string(max_passes) + " passes of a head in one propose()");
    for (uint32_t i = 1; !keeps_kv() && i < b.row_count; ++i)
        if (host::row_of(b, i).draft_count != host::row_of(b, 0).draft_count)
            return invalid("rows of " + std::to_string(host::row_of(b, 0).draft_count) + " drafts and of " +
                           std::to_string(host::row_of(b, i).draft_count) + " in one pass of a head without layers");
    return {};
}

Result<runner::SampledRows> DraftModel::run_pass() {
    auto& [parts, spans, sampling] = *started_;
    if (spans.all().empty()) return runner::SampledRows{};
    batch_.clear(parts.passes.batch_form());
    spans.fill(batch_);
    if (load_.form().is_head()) batch_.kept_row = parts.passes.hidden_row(work_.passes);
    PB_TRY(const bool on_device, sampling.is_on_device());
    const auto out = compute(on_device);
    spans.passed(static_cast<bool>(out), batch_.kept_row);
    PB_CHECK(out);
    if (on_device) return out->sampled;
    return load_.form().computes ? sampling.sample(out->logits) : runner::SampledRows{};
}

Result<execution::StepOutput> DraftModel::compute(bool on_device) {
    auto& [parts, spans, sampling] = *started_;
    const runner::SampleCall call = sampling.call();
    const uint64_t start = parts.clock.now_ns();
    auto out = parts.passes.compute(batch_, on_device ? &call : nullptr);
    work_.ns += parts.clock.now_ns() - start;
    work_.passes += 1;
    work_.tokens += batch_.tokens();
    return out;
}

}  // namespace patchbay::engine
