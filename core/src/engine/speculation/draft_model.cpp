#include "engine/speculation/draft_model.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <spdlog/spdlog.h>

#include "config/load.hpp"
#include "engine/speculation/verification.hpp"
#include "execution/model_choice.hpp"
#include "execution/synthetic_tokens.hpp"
#include "host/runner_rules.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::engine {
namespace {

constexpr uint32_t kModel = 0; // the only one

// Which of its guesses came true: those are computed like any other token.
void settle(const Sequence& s, DraftKv& d) {
    size_t right = 0;
    while (right < d.ahead.size() && d.computed < s.confirmed() && d.ahead[right] == s.tokens[d.computed])
        right += 1, d.computed += 1;
    if (d.computed < s.confirmed()) d.ahead.clear();
    else d.ahead.erase(d.ahead.begin(), d.ahead.begin() + static_cast<ptrdiff_t>(right));
}

constexpr const char* kNoSize = "a struct without its struct_size";

}  // namespace

DraftModel::DraftModel(const Context& context) : context_(context), computes_(context.computes) {
    service_ = {sizeof(pb_runner), PB_RUNNER_REVISION, this,
                [](void* ctx, const pb_runner_load* what, pb_runner_facts* facts, pb_str* why) {
                    auto& self = *static_cast<DraftModel*>(ctx);
                    if (!has_size(*what) || !has_size(*facts)) return answer(self, fail(kNoSize), why);
                    return answer(self, self.load(*Whole(what), *facts), why);
                },
                [](void* ctx, pb_runner_batch* batch, pb_str* why) {
                    auto& self = *static_cast<DraftModel*>(ctx);
                    if (!has_size(*batch)) return answer(self, fail(kNoSize), why);
                    WholeInOut whole(batch);
                    return answer(self, self.forward(*whole), why);
                }};
}

std::map<std::string, std::string> settings_of(const pb_runner_load& what) {
    std::map<std::string, std::string> out;
    for (uint32_t i = 0; i < what.setting_count; ++i)
        out[std::string(what.settings[i].key.data, what.settings[i].key.size)] =
            std::string(what.settings[i].value.data, what.settings[i].value.size);
    return out;
}

pb_status DraftModel::answer(DraftModel& self, const Result<>& done, pb_str* why) {
    if (done) return PB_OK;
    self.why_ = done.error();
    *why = {self.why_.data(), self.why_.size()};
    return PB_INVALID;
}

// ---- while the engine is made ----

Result<> DraftModel::load(const pb_runner_load& what, pb_runner_facts& facts) {
    if (!context_) return fail("a model is loaded in create() only");
    if (draft_) return fail("a model is loaded already, and more than one is not done");
    const Context& c = *context_;
    if (const uint32_t ranks = c.config.engine.tensor_parallel_size; ranks > 1)
        return fail("models that draft are not split over ranks (tensor_parallel_size is " + std::to_string(ranks) +
                    ")");
    const bool by_rates = c.config.speculative.rejection_sample_method == config::Verification::kSynthetic;
    if (!computes_ && !by_rates && !(what.has_simulated_acceptance && what.simulated_acceptance >= 0 &&
                                    what.simulated_acceptance <= 1))
        return fail("device '" + c.config.device.plugin +
                    "' computes nothing, so which drafts the model accepts has to be declared (set "
                    "simulated_acceptance, 0 to 1, or speculative.rejection_sample_method: synthetic)");
    if (const uint32_t paths = c.config.speculative.max_paths; !computes_ && paths > 1)
        return fail("speculative.max_paths is " + std::to_string(paths) + ", but on device '" +
                    c.config.device.plugin + "', which computes nothing, a model drafts one path (set 1)");
    acceptance_ = what.simulated_acceptance;
    constexpr uint64_t kOwnNoise = 0x9E3779B97F4A7C15;
    if (c.config.speculative.rejection_sample_method == config::Verification::kRejection) noise_ = kOwnNoise;
    const std::map<std::string, std::string> keys = settings_of(what);
    config::EngineConfig own = c.config;
    PB_TRY(own.model, config::model_settings(keys));
    own.engine.kv_cache_dtype_layers.clear(); // of the model's layers
    const auto numbers = computes_ ? execution::Numbers::kSome : execution::Numbers::kNone;
    PB_TRY(execution::ModelChoice choice, execution::choose_model(own, c.registry, numbers));
    if (!choice.note.empty()) spdlog::warn("{}: {}", own.model.path, choice.note);
    identity_ = "dummy";
    if (computes_ && own.model.load_format != config::LoadFormat::kDummy) {
        PB_TRY(identity_, weights::model_identity(own.model.path));
    }
    PB_TRY(host::Model model, c.registry.model(choice.plugin, {}, c.services));
    weights::FlatConfig with_target = choice.config;
    for (const auto& [key, value] : c.target) with_target["target." + key] = value;
    const auto facts_read = runner::read_facts(*model.component, with_target);
    if (!facts_read) return fail((own.model.path.empty() ? "" : own.model.path + ": ") + facts_read.error());
    facts_ = *facts_read;
    if (runner::is_head(*model.component)) head_depth_ = model.call<&pb_draft_head::max_draft_depth>();
    choice.source.read_with(c.pool);
    draft_.emplace(runner::DraftModel{std::move(model), facts_, std::move(choice.config), std::move(choice.source),
                                      choice.weights, std::move(choice.kv_dtypes)});
    loaded_with_ = keys;
    loaded_facts_ = {sizeof(pb_runner_facts), kModel, facts_.vocab_size, facts_.hidden_size, facts_.layer_count,
                     facts_.max_position, computes_ ? 1u : 0u, head_depth_.value_or(0)};
    copy_out(&facts, loaded_facts_);
    return {};
}

// ---- steps ----

uint32_t DraftModel::make_room(Sequence& s, uint32_t count, size_t running) {
    const uint32_t confirmed = s.confirmed();
    if (!keeps_kv()) return count;
    if (kv_of(s).lost || confirmed > facts_.max_position) return 0;
    count = std::min(count, facts_.max_position - confirmed + 1); // the last draft is not computed
    kv::KvCache& kv = parts_->kv;
    const uint32_t there = kv.shape().capacity(s.table), size = kv.shape().block_size();
    if (confirmed + count > there) {
        const uint64_t groups = kv.shape().windows().size(), left = running * groups, free = kv.pool().free();
        const uint64_t blocks = free > left ? (free - left) / groups : 0;
        const auto reached = static_cast<uint32_t>(std::min<uint64_t>(confirmed + count, there + blocks * size));
        count = reached > confirmed ? reached - confirmed : 0;
        if (count > 0 && !kv.tables().grow(s.table, confirmed + count)) return 0;
    }
    return count;
}

void DraftModel::begin(std::span<const Row> rows, std::vector<Sequence*> all) {
    all_ = std::move(all);
    turns_.clear();
    for (const Row& r : rows) turns_[r.sequence->id] = {r.sequence, r.max_drafts, kNone};
    work_ = {};
    followed_ = !keeps_kv();
    in_propose_ = true;
    if (!is_head()) return;
    for (Sequence* s : all_) { // guesses were made from guesses: they are computed anew from what the target has
        kv_of(*s).ahead.clear();
        kv_of(*s).made.clear();
    }
}

Result<> DraftModel::end() {
    in_propose_ = false;
    Result<> done;
    if (!followed_) {
        for (auto& [id, turn] : turns_) turn.asked = kNone;
        plan_pass();
        rows_.clear();
        draws_ = false;
        if (const auto passed = run_pass({}); !passed) done = fail(passed.error());
    }
    for (Sequence* s : all_) kv_of(*s).hidden = {}; // the next step's lie there
    return done;
}

uint32_t DraftModel::computed_by_both(const Sequence& s) const {
    if (!keeps_kv()) return s.computed;
    const bool is_left = kv_of(s).lost || kv_of(s).computed >= facts_.max_position;
    return is_left ? s.computed : std::min(s.computed, kv_of(s).computed);
}

Result<> DraftModel::forward(pb_runner_batch& b) {
    if (!in_propose_) return fail("a model is run in propose() only");
    const auto max_drafts = [this](uint64_t id) {
        const auto at = turns_.find(id);
        return at == turns_.end() ? std::nullopt : std::optional(at->second.max_drafts);
    };
    PB_CHECK(host::check_batch(b, {kModel, facts_.vocab_size, max_drafts}));
    std::fill_n(b.tokens, b.row_count, -1);
    if (b.logprobs) std::fill_n(b.logprobs, b.row_count, 0.0f);
    if (b.top_count > 0) {
        std::fill_n(b.top_tokens, size_t{b.row_count} * b.top_count, -1);
        std::fill_n(b.top_logprobs, size_t{b.row_count} * b.top_count, 0.0f);
    }
    if (is_head()) PB_CHECK(check_head_pass(b));
    append_drafts(b);
    if (keeps_kv()) plan_pass();
    else plan_layerless_pass();
    const auto done = run_pass(sample_batch(b));
    if (done && computes_) hand_out(*done, b);
    if (done && !computes_) make_up(b);
    for (auto& [id, turn] : turns_) turn.sequence->drop_drafts();
    return done ? Result<>() : fail(done.error());
}

// After the sequences' own tokens, where there is room for them: no pointer moves.
void DraftModel::append_drafts(pb_runner_batch& b) {
    for (auto& [id, turn] : turns_) turn.asked = kNone;
    for (uint32_t i = 0; i < b.row_count; ++i) {
        const pb_runner_row& row = host::row_of(b, i);
        Turn& turn = turns_.at(row.id);
        Sequence& s = *turn.sequence;
        turn.asked = i;
        s.drop_drafts();
        assert(s.tokens.capacity() >= s.tokens.size() + row.draft_count);
        s.tokens.insert(s.tokens.end(), row.drafts, row.drafts + row.draft_count);
        s.drafts = row.draft_count;
    }
}

Result<> DraftModel::check_head_pass(const pb_runner_batch& b) const {
    const uint32_t most = parts_->passes.max_head_passes();
    if (work_.passes >= most)
        return fail("more than " + std::to_string(most) + " passes of a head in one propose()");
    for (uint32_t i = 1; !keeps_kv() && i < b.row_count; ++i)
        if (host::row_of(b, i).draft_count != host::row_of(b, 0).draft_count)
            return fail("rows of " + std::to_string(host::row_of(b, 0).draft_count) + " drafts and of " +
                        std::to_string(host::row_of(b, i).draft_count) + " in one pass of a head without layers");
    return {};
}

// Those of the tokens that the target computed in this step are its own; after them, those that the head made.
bool DraftModel::find_features(const Sequence& s, uint32_t begin, uint32_t end) {
    const size_t before = features_.size();
    for (uint32_t token = begin; token < end; ++token) {
        const DraftKv& d = kv_of(s);
        const uint32_t newest = s.confirmed() - 1; // which only the head has computed
        const uint32_t made = token - newest;
        if (token < newest && d.hidden.has(token))
            features_.push_back(static_cast<int32_t>(d.hidden.row_of(token)));
        else if (token >= newest && made < d.made.size()) features_.push_back(d.made[made]);
        else return features_.resize(before), false;
    }
    return true;
}

// All rows from the hidden state that the newest token was sampled from.
void DraftModel::plan_layerless_pass() {
    spans_.clear();
    features_.clear();
    for (Sequence* s : all_) {
        const auto turn = turns_.find(s->id);
        if (turn == turns_.end() || turn->second.asked == kNone || s->confirmed() < 2) continue;
        ahead_ = s->drafts; // of all alike
        const uint32_t from = s->confirmed() - 2;
        const size_t at = features_.size();
        if (ahead_ < head_depth_.value_or(0) && find_features(*s, from, from + 1))
            spans_.push_back({s, from, from + 1, turn->second.asked, at});
    }
}

// In the order in which the target computed them: a prefix that another one fills in this pass is there.
void DraftModel::plan_pass() {
    spans_.clear();
    features_.clear();
    const uint32_t shift = is_head() ? 1 : 0; // from a place to the token that is computed there
    uint32_t left = parts_->passes.max_tokens();
    for (Sequence* s : all_) {
        const auto turn = turns_.find(s->id);
        const uint32_t asked = turn == turns_.end() ? kNone : turn->second.asked;
        DraftKv& d = kv_of(*s);
        if (d.lost) continue;
        if (!is_head()) settle(*s, d);
        uint32_t begin = d.computed, end = std::min({s->computed, s->confirmed() - shift, facts_.max_position});
        if (asked != kNone) {
            end = static_cast<uint32_t>(s->tokens.size()) - shift;
            const auto same = std::mismatch(d.ahead.begin(), d.ahead.end(), s->tokens.begin() + s->confirmed(),
                                            s->tokens.end()).first - d.ahead.begin();
            begin = std::min(d.computed + static_cast<uint32_t>(same), end - 1); // whose logits are wanted, always
            d.made.resize(std::min(d.made.size(), static_cast<size_t>(same) + 1)); // others follow other drafts
        } else if (followed_) {
            continue;
        }
        if (begin >= end || left == 0) continue;
        const uint32_t to = std::min(end, begin + left);
        const size_t features = features_.size();
        if (is_head() && !find_features(*s, begin, to)) {
            d.lost |= begin < d.hidden.begin; // what it missed does not come back
            continue;
        }
        spans_.push_back({s, begin, to, to == end ? asked : kNone, features});
        left -= to - begin;
    }
    followed_ = true;
}

pb_sample_batch DraftModel::sample_batch(const pb_runner_batch& b) {
    draws_ = b.row_count > 0 && computes_ && host::probs_of(b, 0, facts_.vocab_size);
    rows_.clear();
    params_.clear();
    params_.reserve(spans_.size());
    asked_.clear();
    for (const Span& span : spans_) {
        if (span.asked == kNone) continue;
        const Sequence& s = *span.sequence;
        params_.push_back(s.params);
        params_.back().logprobs = b.logprobs || b.top_count > 0 ? b.top_count + 1 : 0;
        rows_.push_back(parts_->rows.row(s, s.drafts));
        rows_.back().params = &params_.back();
        rows_.back().seed ^= noise_;
        asked_.push_back(span.asked);
    }
    pb_sample_batch out{};
    out.struct_size = sizeof out;
    out.row_count = static_cast<uint32_t>(rows_.size());
    out.row_stride = sizeof(pb_sample_row);
    out.max_logprobs = b.top_count;
    out.logits = tensor(static_cast<float*>(nullptr), PB_F32, {static_cast<int64_t>(rows_.size()), facts_.vocab_size});
    out.rows = rows_.data();
    return out;
}

Result<runner::SampledRows> DraftModel::run_pass(const pb_sample_batch& rows) {
    if (spans_.empty()) return runner::SampledRows{};
    batch_.clear(parts_->passes.batch_form());
    const uint32_t shift = is_head() ? 1 : 0;
    for (const Span& span : spans_) {
        const uint32_t n = span.end - span.begin;
        batch_.add({std::span<const TokenId>(span.sequence->tokens).subspan(span.begin + shift, n), span.begin,
                    span.asked == kNone ? 0u : 1u, span.sequence->table,
                    is_head() ? std::span<const int32_t>(features_).subspan(span.features, n)
                              : std::span<const int32_t>()});
    }
    batch_.finish();
    if (is_head()) {
        batch_.draft_step = ahead_;
        batch_.kept_row = parts_->passes.hidden_row(work_.passes);
    }
    const host::Component& sampler = parts_->sampler.current();
    if (draws_ && runner::runs_on_device(sampler)) return fail("probabilities of a sampler that runs on a device");
    const bool on_device = computes_ && !rows_.empty() && runner::runs_on_device(sampler);
    std::span<float> logits;
    Result<runner::SampledRows> sampled{runner::SampledRows{}};
    const auto pass = [&]() -> Result<> {
        const runner::SampleCall call{sampler, rows};
        PB_TRY(const execution::StepOutput out, parts_->passes.compute(batch_, on_device ? &call : nullptr));
        if (on_device) sampled = out.sampled;
        else logits = out.logits;
        return {};
    };
    const uint64_t start = parts_->clock.now_ns();
    const Result<> done = pass();
    work_.ns += parts_->clock.now_ns() - start;
    work_.passes += 1;
    work_.tokens += batch_.tokens();
    auto made = static_cast<int32_t>(batch_.kept_row);
    for (const Span& span : spans_) {
        if (!keeps_kv()) break;
        Sequence& s = *span.sequence;
        DraftKv& d = kv_of(s);
        d.lost = !done; // what its pages hold is not known
        d.computed = std::min(span.end, s.confirmed() - shift);
        d.ahead.assign(s.tokens.begin() + d.computed + shift, s.tokens.begin() + span.end + shift);
        if (is_head() && span.asked != kNone) {
            d.made.resize(s.drafts);
            d.made.push_back(made++);
        }
    }
    PB_CHECK(done);
    return on_device || !computes_ || rows_.empty() ? sampled : sample(sampler, rows, logits);
}

Result<runner::SampledRows> DraftModel::sample(const host::Component& sampler, pb_sample_batch b,
                                               std::span<float> logits) {
    const size_t n = b.row_count, top = n * b.max_logprobs;
    tokens_.assign(n, -1);
    logprobs_.assign(n, 0);
    top_tokens_.assign(top, -1);
    top_logprobs_.assign(top, 0);
    faults_.assign(n, 0);
    b.logits.data = logits.data();
    b.tokens = tokens_.data();
    b.logprobs = logprobs_.data();
    b.top_tokens = top_tokens_.data();
    b.top_logprobs = top_logprobs_.data();
    b.faults = faults_.data();
    if (draws_) PB_CHECK(draw_rows(sampler, b, logits));
    const std::vector<TokenId> drawn = draws_ ? tokens_ : std::vector<TokenId>();
    const std::vector<float> logprobs = draws_ ? logprobs_ : std::vector<float>();
    PB_CHECK(host::checked<&pb_sampler::sample>(sampler, &b));
    for (size_t i = 0; i < drawn.size(); ++i) {
        if (drawn[i] >= 0) tokens_[i] = drawn[i], logprobs_[i] = logprobs[i];
        else if (tokens_[i] >= 0) drawn_from_[i * facts_.vocab_size + static_cast<size_t>(tokens_[i])] = 1;
    }
    return runner::SampledRows{tokens_, top_tokens_, logprobs_, top_logprobs_, b.max_logprobs,
                               static_cast<uint32_t>(std::ranges::count(faults_, 1))};
}

// The tokens of rows with a temperature, and what all are drawn from. Before sample(), which may write into logits.
Result<> DraftModel::draw_rows(const host::Component& sampler, pb_sample_batch b, std::span<float> logits) {
    if (!host::table_of<pb_sampler>(sampler).process)
        return fail("sampler '" + std::string(sampler.type().name) + "' has no process()");
    const size_t vocab = facts_.vocab_size;
    drawn_from_.assign(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(b.row_count * vocab));
    b.logits.data = drawn_from_.data();
    PB_CHECK(host::checked<&pb_sampler::process>(sampler, &b));
    tokens_.assign(b.row_count, -1);
    for (size_t i = 0; i < b.row_count; ++i) {
        const pb_sample_row& row = rows_[i];
        const std::span<float> from = std::span(drawn_from_).subspan(i * vocab, vocab);
        if (row.params->temperature == 0) { // one token has it all: the one that sample() gives
            std::ranges::fill(from, 0.0f);
            continue;
        }
        for (float& p : from) p = std::exp(p);
        tokens_[i] = draw_token(from, draw(row.seed, row.position, Stream::kDraft, 1));
        if (row.params->logprobs == 0 || tokens_[i] < 0) continue;
        const auto raw = logits.subspan(i * vocab, vocab);
        logprobs_[i] = static_cast<float>(raw[static_cast<size_t>(tokens_[i])] - log_sum_exp(raw));
    }
    return {};
}

void DraftModel::hand_out(const runner::SampledRows& sampled, pb_runner_batch& b) const {
    for (size_t i = 0; i < asked_.size(); ++i) {
        const size_t to = asked_[i], top = b.top_count;
        const TokenId token = sampled.tokens[i];
        if (token < 0 || static_cast<uint32_t>(token) >= facts_.vocab_size) continue;
        b.tokens[to] = token;
        if (draws_)
            std::copy_n(drawn_from_.begin() + static_cast<ptrdiff_t>(i * facts_.vocab_size), facts_.vocab_size,
                        host::probs_of(b, static_cast<uint32_t>(to), facts_.vocab_size));
        if (b.logprobs) b.logprobs[to] = sampled.logprobs[i];
        std::copy_n(sampled.top_tokens.begin() + static_cast<ptrdiff_t>(i * top), top, b.top_tokens + to * top);
        std::copy_n(sampled.top_logprobs.begin() + static_cast<ptrdiff_t>(i * top), top, b.top_logprobs + to * top);
    }
}

// Where nothing is computed: the token that the target's place will have, or another one.
void DraftModel::make_up(pb_runner_batch& b) const {
    for (const Span& span : spans_) {
        if (span.asked == kNone) continue;
        const Sequence& s = *span.sequence;
        const uint64_t position = s.tokens.size();
        const TokenId right = execution::synthetic_token(s.seed, position, facts_.vocab_size, parts_->eos,
                                              s.request.sampling.stop_token_ids);
        const bool accepted = uniform(draw(s.seed, position, Stream::kDraft, 0)[0]) < acceptance_;
        b.tokens[span.asked] =
            accepted ? right : static_cast<TokenId>((static_cast<uint32_t>(right) + 1) % facts_.vocab_size);
        if (float* probs = host::probs_of(b, span.asked, facts_.vocab_size)) {
            std::fill_n(probs, facts_.vocab_size, 0.0f);
            probs[b.tokens[span.asked]] = 1;
        }
    }
}

}  // namespace patchbay::engine
