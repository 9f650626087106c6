#include "scenario/player.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "engine/simulation.hpp"
#include "engine/speculation/draft_tree.hpp"
#include "patchbay/sdk/philox.hpp"
#include "scenario/load.hpp"
#include "scenario/vocabulary.hpp"

namespace patchbay::scenario {
namespace {

constexpr uint64_t kMs = 1'000'000; // ns

config::EngineConfig config_of(const Scenario& s) {
    config::EngineConfig c;
    c.engine = s.engine;
    c.speculative = s.speculative;
    c.scheduler = s.policy;
    c.kv_policy = s.kv_policy;
    engine::leave_out_model(c, kVocabSize); // only the scenario moves the clock
    auto& shape = c.model.shape;
    for (size_t i = 0; i < s.model.eos.size(); ++i)
        shape["eos_token_id." + std::to_string(i)] = std::to_string(s.model.eos[i]);
    if (s.model.sliding_window == 0) return c;
    shape["architectures.0"] = "Qwen2ForCausalLM"; // which has windows in layers of its choice
    shape["use_sliding_window"] = "true";
    shape["sliding_window"] = std::to_string(s.model.sliding_window);
    std::vector<std::string> layers = s.model.layer_types;
    if (layers.empty()) layers = {"sliding_attention"};
    shape["num_hidden_layers"] = std::to_string(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) shape["layer_types." + std::to_string(i)] = layers[i];
    return c;
}

}  // namespace

Result<std::unique_ptr<Player>> Player::create(const Scenario& s, const host::Registry& registry,
                                               host::Prober& prober) {
    std::unique_ptr<Player> out(new Player(s, registry, prober));
    out->clock_.advance_ns(kMs); // an arrival at 0 would be "now"
    execution::ScriptSetup setup{*out, {}, nullptr};
    if (s.engine.num_speculative_tokens > 0) {
        PB_TRY(setup.proposer, scripted_proposer(out->drafts_));
    }
    if (!s.model.vocabulary.empty()) setup.vocabulary = scripted_vocabulary(s.model.vocabulary);
    PB_TRY(out->engine_, engine::Engine::create_scripted(config_of(s), registry, out->clock_, std::move(setup)));
    const auto names_blocks = [](const Step& step) {
        const auto* expect = std::get_if<step::Expect>(&step.what);
        return expect && std::ranges::any_of(expect->expectations, is_of_blocks);
    };
    if (std::ranges::any_of(s.steps, names_blocks)) out->blocks_.follow(*out->engine_);
    out->grammar_row_ = work_of_grammar_row(s.model.vocabulary);
    out->start_ns_ = out->clock_.now_ns();
    return out;
}

Played Player::play() {
    while (!over()) {
        if (!needs_engine_step()) {
            act(now());
            at_ += !difference_;
            continue;
        }
        engine_step();
        if (!over() && !followed_) settle();
    }
    return {std::move(difference_), engine_steps_};
}

bool Player::needs_engine_step() const {
    const auto& what = now().what;
    if (const auto* e = std::get_if<step::Expect>(&what))
        return std::ranges::any_of(e->expectations, is_of_plan);
    if (std::holds_alternative<step::Drain>(what)) return engine_->has_unfinished();
    return std::holds_alternative<step::Output>(what) || std::holds_alternative<step::Run>(what) ||
           std::holds_alternative<step::InFlight>(what);
}

void Player::engine_step() {
    if (const auto* drain = std::get_if<step::Drain>(&now().what)) {
        left_ = left_ == 0 ? drain->max_steps : left_ - 1;
        if (left_ == 0)
            return differ("drain", "every request has ended after " + std::to_string(drain->max_steps) + " steps",
                          "waiting " + text_of(value_of(Subject::kWaiting, {}, state())) + ", running " +
                              text_of(value_of(Subject::kRunning, {}, state())));
    }
    plan_.clear();
    followed_ = in_hand_ = false;
    output_ = nullptr;
    engine_steps_ += 1;
    in_step_ = true;
    const auto report = engine_->step();
    in_step_ = false;
    if (!report) return differ("the engine", "another step", report.error());
    tally_.add(*report);
    step_in_flight_ = is_async() && report->sync_reason != "probation" && !plan_.empty();
    if (difference_) return;
    if (output_ && !std::get<step::Output>(output_->what).tokens.empty()) // no step asked for it
        return differ(*output_, "output", text_of(Value(std::get<step::Output>(output_->what).tokens)),
                      "no token is sampled in this step");
    const engine::View view = engine_->view();
    spend(1 + report->scheduled_tokens + report->running_requests + report->waiting_requests +
          report->grammar_masks * grammar_row_ + work_of_step(view, candidates_));
    if (difference_) return;
    if (!drafts_.empty())
        for (const auto& [name, paths] : std::get<step::Draft>(draft_->what).paths)
            if (drafts_.contains(requests_.at(name).id))
                return differ(*draft_, "draft", "the proposer is asked for " + name, "it is not asked");
    for (const host::SwapRecord& r : report->swaps)
        if (r.state == host::SwapState::kRefused) return differ("swap", "the scheduler takes the slot", r.text());
    if (!engine_->has_unfinished() && view.free_swap_pages != view.total_swap_pages)
        differ("after all have ended", "free_swap_pages: " + std::to_string(view.total_swap_pages),
               "free_swap_pages: " + std::to_string(view.free_swap_pages));
    else if (!engine_->has_unfinished() && view.free_pages != view.total_pages)
        differ("after all have ended", "free_pages: " + std::to_string(view.total_pages),
               "free_pages: " + std::to_string(view.free_pages));
}

bool Player::is_async() const { return scenario_.engine.async_scheduling == config::AsyncScheduling::kOn; }

void Player::planned(std::span<const pb_plan_item> plan) {
    plan_.assign(plan.begin(), plan.end());
    for (const pb_plan_item& i : plan) blocks_.note(names_.at(i.id), i.id);
    in_hand_ = false;
    if (!plan.empty()) follow_file(is_async() && !step_in_flight_ ? Back::kLater : Back::kNow);
    clock_.advance_ns(scenario_.step_ms * kMs);
}

void Player::sampled(std::span<const execution::ScriptedRows> rows) {
    if (!in_hand_) follow_file(Back::kNow);
    step_in_flight_ = false;
    if (!output_ || difference_) return;
    const Step& output = *std::exchange(output_, nullptr);
    for (const auto& [name, tokens] : std::get<step::Output>(output.what).tokens) {
        const engine::RequestId id = requests_.at(name).id;
        const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.id == id; });
        if (at == rows.end())
            return differ(output, "output", text_of(Value(Texts{{name, tokens}})),
                          "no token is sampled for " + name + " in this step");
        // Drafts are accepted while they are what is sampled; a step makes one token more.
        size_t accepted = engine::common_length(at->drafts, tokens);
        for (const auto& b : at->branches)
            accepted = std::max<size_t>(accepted, engine::common_length(b.drafts, tokens));
        if (tokens.size() != accepted + 1)
            return differ(output, "output", text_of(Value(Texts{{name, tokens}})),
                          std::to_string(accepted + 1) + " of them, as the drafts are " +
                              text_of(Value(Texts{{name, Tokens(at->drafts.begin(), at->drafts.end())}})));
        std::copy_n(tokens.begin(), std::min(tokens.size(), at->tokens.size()), at->tokens.begin());
        for (const auto& b : at->branches) // row j stands after so many drafts more than its first one
            for (size_t j = 0, after = b.drafts.size() - b.tokens.size() + 1; j < b.tokens.size(); ++j)
                if (after + j < tokens.size()) b.tokens[j] = tokens[after + j];
    }
}

void Player::follow_file(Back back) {
    followed_ = true;
    while (!over()) {
        const Step& step = now();
        if (std::holds_alternative<step::Output>(step.what)) {
            if (back == Back::kLater) return; // the next step is planned before it
            output_ = &step;
            at_ += 1;
            break;
        }
        if (const auto* flight = std::get_if<step::InFlight>(&step.what)) {
            if (back == Back::kNow) return differ("in_flight", "no other step is in flight", "one is");
            Names planned;
            for (const pb_plan_item& i : plan_) planned.push_back(names_.at(i.id));
            if (planned != flight->ids)
                return differ("in_flight", text_of(Value(flight->ids)), text_of(Value(planned)));
            at_ += 1;
            return;
        }
        if (const auto* run = std::get_if<step::Run>(&step.what)) {
            count_down(*run);
            break;
        }
        if (std::holds_alternative<step::Drain>(step.what)) break;
        act(step);
        at_ += !difference_;
    }
    in_hand_ = true;
    take_drafts();
}

// In the engine's step nothing was scheduled and nothing came back.
void Player::settle() {
    const Step& step = now();
    if (const auto* run = std::get_if<step::Run>(&step.what)) return count_down(*run);
    if (const auto* output = std::get_if<step::Output>(&step.what)) {
        if (!output->tokens.empty()) return differ("output", text_of(Value(output->tokens)), "nothing is scheduled");
        at_ += 1;
    } else if (const auto* flight = std::get_if<step::InFlight>(&step.what)) {
        return differ("in_flight", text_of(Value(flight->ids)), "[]");
    } else if (!std::holds_alternative<step::Drain>(step.what)) {
        act(step);
        at_ += !difference_;
    }
}

void Player::count_down(const step::Run& run) {
    left_ = left_ == 0 ? run.steps : left_;
    left_ -= 1;
    at_ += left_ == 0;
}

// What the proposer says after the output in hand.
void Player::take_drafts() {
    if (over()) return;
    const auto* draft = std::get_if<step::Draft>(&now().what);
    if (!draft) return;
    draft_ = &now();
    for (const auto& [name, paths] : draft->paths) drafts_[requests_.at(name).id] = paths;
    at_ += 1;
}

void Player::act(const Step& step) {
    struct Act {
        Player& p;
        void operator()(std::monostate) const {}
        void operator()(const step::Add& what) const {
            for (const Arrival& a : what.requests)
                if (!p.difference_) p.add(a);
        }
        void operator()(const step::Abort& what) const {
            for (const std::string& name : what.ids) p.engine_->abort(p.requests_.at(name).id);
        }
        void operator()(const step::Swap& what) const {
            const auto swap =
                p.engine_->swap({engine::SwapSlot::kScheduler, what.scheduler, p.registry_, p.prober_});
            const host::SwapRecord record = swap->record();
            if (record.state == host::SwapState::kRefused)
                p.differ("swap", "the scheduler takes the slot", record.text());
        }
        void operator()(const step::ResetPrefixCache& what) const {
            const auto done = p.engine_->reset_prefix_cache();
            if (bool(done) == (what.answer == Answer::kDone)) return;
            p.differ("reset_prefix_cache", done ? "refused" : "done", done ? "done" : done.error());
        }
        void operator()(const step::Wait& what) const { p.clock_.advance_ns(what.ms * kMs); }
        void operator()(const step::Expect& what) const { p.expect(what); }
        void operator()(const step::Drain&) const { p.left_ = 0; }
        void operator()(const step::Draft&) const {
            p.differ("draft", "the proposer is asked", "no step came back with the output above");
        }
        // Those below are of a step of the engine, and played there.
        void operator()(const step::Output&) const {}
        void operator()(const step::InFlight&) const {}
        void operator()(const step::Run&) const {}
    };
    std::visit(Act{*this}, step.what);
}

void Player::add(const Arrival& a) {
    engine::Request r;
    r.prompt = tokens_of(a.prompt);
    r.priority = a.priority;
    r.tenant = a.tenant;
    r.arrival_ns = a.arrival_ms ? start_ns_ + a.arrival_ms * kMs : 0;
    r.deadline_ns = a.deadline_ms ? start_ns_ + a.deadline_ms * kMs : 0;
    r.expected_output_tokens = a.expected_output_tokens;
    r.cache_salt = a.salt;
    r.sampling.n = a.n;
    r.sampling.beam_width = a.beam_width;
    r.sampling.skip_reading_prefix_cache = a.skip_reading_prefix_cache;
    r.sampling.max_tokens = a.max_tokens;
    r.sampling.min_tokens = a.min_tokens;
    r.sampling.stop_token_ids = a.stop_token_ids;
    r.sampling.ignore_eos = a.ignore_eos;
    r.sampling.stop = a.stop;
    r.sampling.include_stop_str_in_output = a.include_stop_str_in_output;
    r.sampling.structured_outputs = a.structured_outputs;
    r.on_output = [this, &a](const engine::RequestOutput& out) {
        const std::string name = a.name_of(out.index);
        Known& known = requests_.at(name);
        known.output.insert(known.output.end(), out.tokens.begin(), out.tokens.end());
        known.text += out.text;
        if (out.finish == engine::FinishReason::kNone) return;
        known.finish = out.finish;
        known.stop_reason = out.stop_reason;
        known.cached_tokens = out.cached_tokens;
        known.preemptions = out.preemptions;
        finished_[name] = out.finish;
    };
    const auto id = engine_->add_request(std::move(r));
    for (uint32_t i = 0; i < a.sequences(); ++i) {
        requests_[a.name_of(i)].id = id ? *id + i : 0;
        if (id) names_[*id + i] = a.name_of(i);
        if (id && a.beam_width > 0) candidates_[*id + i] = candidates_of(a, scenario_.model.eos.size());
    }
    const std::string expected = a.refused.empty() ? "it is added" : "it is refused: " + a.refused;
    if (id && !a.refused.empty()) differ(a.origin, "add " + a.id, expected, "it is added");
    if (!id && (a.refused.empty() || id.error().find(a.refused) == std::string::npos))
        differ(a.origin, "add " + a.id, expected, "it is refused: " + id.error());
}

Tokens Player::tokens_of(const Prompt& prompt) const {
    Tokens out;
    for (uint32_t i = 0; i < prompt.made_up; ++i) // a pure function of which request it is and where
        out.push_back(static_cast<TokenId>(draw(requests_.size(), i, Stream::kSample, 0)[0] % kVocabSize));
    out.insert(out.end(), prompt.times, prompt.repeated);
    out.insert(out.end(), prompt.tokens.begin(), prompt.tokens.end());
    return out;
}

State Player::state() {
    State s{requests_, names_, plan_, engine_->view(), finished_, blocks_, tally_, ""};
    if (in_step_) s.tally.add(s.engine.report);
    for (const host::Identity& p : engine_->facts().plugins)
        if (p.kind == "scheduler") s.policy = p.name;
    return s;
}

void Player::spend(uint64_t work) {
    work_ += work;
    if (work_ > scenario_.limits.work)
        differ("the file", "at most " + std::to_string(scenario_.limits.work) +
                               " tokens that are computed and sequences that are looked at, or as much other work",
               "more, after " + std::to_string(engine_steps_) + " steps of the engine");
}

void Player::expect(const step::Expect& what) {
    const State is = state();
    spend(work_of(what, is.engine, requests_.size()));
    if (difference_) return;
    bool finished = false, events = false;
    for (const Expectation& e : what.expectations) {
        const Value got = value_of(e.subject, e.value, is);
        finished = finished || asks_for(e, Subject::kFinished);
        events = events || asks_for(e, Subject::kKvEvents);
        if (!meets(got, e.value)) return differ(e.origin, subject_info(e.subject).name, text_of(e.value), text_of(got));
    }
    if (finished) finished_.clear();
    if (events) blocks_.forget_events();
}

void Player::differ(const std::string& what, const std::string& expected, const std::string& got) {
    differ(now().origin, what, expected, got);
}

void Player::differ(const Step& step, const std::string& what, const std::string& expected, const std::string& got) {
    difference_ = {step.origin, static_cast<size_t>(&step - scenario_.steps.data()) + 1, what, expected, got};
}

void Player::differ(const config::Origin& origin, const std::string& what, const std::string& expected,
                    const std::string& got) {
    difference_ = {origin, at_ + 1, what, expected, got};
}

Result<Played> play(const Scenario& s, const host::Registry& registry, host::Prober& prober) {
    PB_TRY(const auto player, Player::create(s, registry, prober));
    return player->play();
}

std::string Difference::text() const {
    const std::string where = *origin.name + ":" + std::to_string(origin.line) + ": step " + std::to_string(step);
    return printable_message(where + ": " + what) + "\n  expected  " + printable_message(expected) +
           "\n  got       " + printable_message(got);
}

}  // namespace patchbay::scenario
