#include "scenario/player.hpp"

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "engine/engine_control.hpp"
#include "execution/sync_reasons.hpp"
#include "scenario/leave_out_model.hpp"
#include "scenario/load.hpp"
#include "scenario/scripted_engine.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::scenario {
namespace {

constexpr uint64_t kMs = 1'000'000; // ns

config::EngineConfig config_of(const Scenario& s) {
    config::EngineConfig c;
    c.engine = s.engine;
    c.speculative = s.speculative;
    c.scheduler = s.policy;
    c.kv_policy = s.kv_policy;
    leave_out_model(c, kVocabSize); // only the scenario moves the clock
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

// The text of a scenario's tokens, for stop strings and grammars: the file gives it for some ids, the others have none.
class ScriptedTokenizer final : public text::Tokenizer {
  public:
    explicit ScriptedTokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

    // The longest token at each place; bytes that begin none are left out.
    Tokens encode(std::string_view text) const override {
        Tokens out;
        while (!text.empty()) {
            const auto* best = static_cast<const Vocabulary::value_type*>(nullptr);
            for (const auto& token : vocabulary_)
                if (text.starts_with(token.second) && (!best || token.second.size() > best->second.size()))
                    best = &token;
            if (best) out.push_back(best->first);
            text.remove_prefix(best ? best->second.size() : 1);
        }
        return out;
    }
    std::string_view token_bytes(TokenId id) const override {
        const auto at = vocabulary_.find(id);
        return at == vocabulary_.end() ? std::string_view() : at->second;
    }
    bool is_special(TokenId) const override { return false; }
    uint32_t vocab_size() const override { return kVocabSize; }
    std::optional<TokenId> eos() const override { return std::nullopt; } // the scenario's are the model's
    std::optional<TokenId> id_of(std::string_view text) const override {
        const auto at = std::ranges::find(vocabulary_, text, &Vocabulary::value_type::second);
        return at == vocabulary_.end() ? std::nullopt : std::optional(at->first);
    }

  private:
    Vocabulary vocabulary_;
};

bool is_async(const Scenario& s) { return s.engine.async_scheduling == config::AsyncScheduling::kOn; }

bool needs_engine_step(const Step& step, const engine::Engine& engine) {
    const auto& what = step.what;
    if (const auto* e = std::get_if<step::Expect>(&what)) return std::ranges::any_of(e->expectations, is_of_plan);
    if (std::holds_alternative<step::Drain>(what)) return engine.has_unfinished();
    return std::holds_alternative<step::Output>(what) || std::holds_alternative<step::Run>(what) ||
           std::holds_alternative<step::InFlight>(what);
}

}  // namespace

Player::Player(const Scenario& s, const host::Registry& registry, host::Prober& prober)
    : scenario_(s), registry_(registry), prober_(prober), course_(s), requests_(s, kMs),
      grammar_row_(work_of_grammar_row(s.model.vocabulary)) {
    clock_.advance_ns(kMs); // an arrival at 0 would be "now"
}

Result<std::unique_ptr<Player>> Player::create(const Scenario& s, const host::Registry& registry,
                                               host::Prober& prober) {
    std::unique_ptr<Player> out(new Player(s, registry, prober));
    ScriptSetup setup{*out, {}, nullptr};
    if (s.engine.num_speculative_tokens > 0) {
        PB_TRY(setup.proposer, scripted_proposer(out->drafts_.by_id()));
    }
    if (!s.model.vocabulary.empty()) setup.vocabulary = std::make_shared<ScriptedTokenizer>(s.model.vocabulary);
    PB_TRY(out->engine_, create_scripted(config_of(s), registry, out->clock_, std::move(setup)));
    const auto names_blocks = [](const Step& step) {
        const auto* expect = std::get_if<step::Expect>(&step.what);
        return expect && std::ranges::any_of(expect->expectations, is_of_blocks);
    };
    if (std::ranges::any_of(s.steps, names_blocks)) out->blocks_.follow(*out->engine_);
    return out;
}

Played Player::play() {
    const auto end_step = [this](const engine::StepReport& report) { this->end_step(report); };
    const auto done = service::run_steps(*engine_, {[this] { return go_on(); }, end_step});
    if (!done) course_.differ("the engine", "another step", done.error());
    return {course_.difference(), engine_steps_};
}

bool Player::go_on() {
    while (!course_.over()) {
        if (needs_engine_step(course_.now(), *engine_)) return begin_step();
        act(course_.now());
        course_.advance();
    }
    return false;
}

// False: the file lets its drain take no further one.
bool Player::begin_step() {
    const auto* drain = std::get_if<step::Drain>(&course_.now().what);
    if (drain && !course_.count_down(*drain)) {
        course_.differ("drain", "every request has ended after " + std::to_string(drain->max_steps) + " steps",
                       "waiting " + text_of(value_of(Subject::kWaiting, {}, state())) + ", running " +
                           text_of(value_of(Subject::kRunning, {}, state())));
        return false;
    }
    step_.plan.clear();
    step_.followed = step_.in_hand = false;
    step_.output = nullptr;
    engine_steps_ += 1;
    step_.under_way = true;
    return true;
}

void Player::end_step(const engine::StepReport& report) {
    step_.under_way = false;
    tally_.add(report);
    step_in_flight_ =
        is_async(scenario_) && report.sync_reason != execution::sync_reason::kProbation && !step_.plan.empty();
    if (!course_.difference()) check(report);
    if (!course_.over() && !step_.followed) settle();
}

// What no file has to say: all that a step was given is used, and the pages of what has ended are free.
void Player::check(const engine::StepReport& report) {
    if (step_.output) {
        const Texts& tokens = std::get<step::Output>(step_.output->what).tokens;
        if (!tokens.empty()) // no step asked for it
            return course_.differ(*step_.output, "output", text_of(Value(tokens)),
                                  "no token is sampled in this step");
    }
    const engine::View view = engine_->view();
    spend(1 + report.work.scheduled_tokens + report.queues.running_requests + report.queues.waiting_requests +
          report.grammars.masks * grammar_row_ + work_of_step(view, requests_.candidates()));
    drafts_.check_all_taken(requests_, course_);
    for (const host::SwapRecord& r : report.swaps)
        if (r.state == host::SwapState::kRefused) course_.differ("swap", "the scheduler takes the slot", r.text());
    if (engine_->has_unfinished()) return;
    const auto all_free = [&](const char* name, uint32_t free, uint32_t total) {
        const std::string expected = std::string(name) + ": " + std::to_string(total);
        if (free != total)
            course_.differ("after all have ended", expected, std::string(name) + ": " + std::to_string(free));
    };
    all_free("free_swap_pages", view.free_swap_pages, view.total_swap_pages);
    all_free("free_pages", view.free_pages, view.total_pages);
}

void Player::planned(std::span<const pb_plan_item> plan) {
    step_.plan.assign(plan.begin(), plan.end());
    for (const pb_plan_item& i : plan) blocks_.note(requests_.name_of(i.id), i.id);
    step_.in_hand = false;
    if (!plan.empty()) follow_file(is_async(scenario_) && !step_in_flight_ ? Back::kLater : Back::kNow);
    clock_.advance_ns(scenario_.step_ms * kMs);
}

void Player::sampled(std::span<const execution::ScriptedRows> rows) {
    if (!step_.in_hand) follow_file(Back::kNow);
    step_in_flight_ = false;
    if (step_.output && !course_.difference())
        write_output(*std::exchange(step_.output, nullptr), requests_, rows, course_);
}

void Player::follow_file(Back back) {
    step_.followed = true;
    while (!course_.over()) {
        const Step& step = course_.now();
        if (std::holds_alternative<step::Output>(step.what)) {
            if (back == Back::kLater) return; // the next step is planned before it
            step_.output = &step;
            course_.advance();
            break;
        }
        if (const auto* flight = std::get_if<step::InFlight>(&step.what)) {
            if (back == Back::kNow) return course_.differ("in_flight", "no other step is in flight", "one is");
            Names planned;
            for (const pb_plan_item& i : step_.plan) planned.push_back(requests_.name_of(i.id));
            if (planned != flight->ids)
                return course_.differ("in_flight", text_of(Value(flight->ids)), text_of(Value(planned)));
            course_.advance();
            return;
        }
        if (const auto* run = std::get_if<step::Run>(&step.what)) {
            course_.count_down(*run);
            break;
        }
        if (std::holds_alternative<step::Drain>(step.what)) break;
        act(step);
        course_.advance();
    }
    step_.in_hand = true;
    drafts_.take(course_, requests_);
}

// In the engine's step nothing was scheduled and nothing came back.
void Player::settle() {
    const Step& step = course_.now();
    if (const auto* run = std::get_if<step::Run>(&step.what)) return course_.count_down(*run);
    if (const auto* output = std::get_if<step::Output>(&step.what)) {
        if (!output->tokens.empty())
            return course_.differ("output", text_of(Value(output->tokens)), "nothing is scheduled");
        course_.advance();
    } else if (const auto* flight = std::get_if<step::InFlight>(&step.what)) {
        return course_.differ("in_flight", text_of(Value(flight->ids)), "[]");
    } else if (!std::holds_alternative<step::Drain>(step.what)) {
        act(step);
        course_.advance();
    }
}

void Player::act(const Step& step) {
    struct Act {
        Player& p;
        void operator()(std::monostate) const {}
        void operator()(const step::Add& what) const {
            for (const Arrival& a : what.requests)
                if (!p.course_.difference()) p.requests_.add(a, *p.engine_, p.course_);
        }
        void operator()(const step::Abort& what) const {
            for (const std::string& name : what.ids) p.engine_->abort(p.requests_.id_of(name));
        }
        void operator()(const step::Swap& what) const {
            const auto swap =
                p.engine_->control().swap({engine::SwapSlot::kScheduler, what.scheduler, p.registry_, p.prober_});
            const host::SwapRecord record = swap->record();
            if (record.state == host::SwapState::kRefused)
                p.course_.differ("swap", "the scheduler takes the slot", record.text());
        }
        void operator()(const step::ResetPrefixCache& what) const {
            const auto done = p.engine_->reset_prefix_cache();
            if (bool(done) == (what.answer == Answer::kDone)) return;
            p.course_.differ("reset_prefix_cache", done ? "refused" : "done", done ? "done" : done.error());
        }
        void operator()(const step::Wait& what) const { p.clock_.advance_ns(what.ms * kMs); }
        void operator()(const step::Expect& what) const { p.expect(what); }
        void operator()(const step::Drain&) const { p.course_.end_drain(); }
        void operator()(const step::Draft&) const {
            p.course_.differ("draft", "the proposer is asked", "no step came back with the output above");
        }
        // Those below are of a step of the engine, and played there.
        void operator()(const step::Output&) const {}
        void operator()(const step::InFlight&) const {}
        void operator()(const step::Run&) const {}
    };
    std::visit(Act{*this}, step.what);
}

State Player::state() {
    State s{requests_.known(), requests_.names(), step_.plan, engine_->view(), requests_.finished(), blocks_, tally_,
            ""};
    if (step_.under_way) s.tally.add(s.engine.report);
    for (const host::Identity& p : engine_->facts().plugins)
        if (p.kind == "scheduler") s.policy = p.name;
    return s;
}

void Player::spend(uint64_t work) {
    work_ += work;
    if (work_ > scenario_.limits.work)
        course_.differ("the file", "at most " + std::to_string(scenario_.limits.work) +
                                       " tokens that are computed and sequences that are looked at, or as much other "
                                       "work",
                       "more, after " + std::to_string(engine_steps_) + " steps of the engine");
}

void Player::expect(const step::Expect& what) {
    const State is = state();
    spend(work_of(what, is.engine, is.requests.size()));
    if (course_.difference()) return;
    bool finished = false, events = false;
    for (const Expectation& e : what.expectations) {
        const Value got = value_of(e.subject, e.value, is);
        finished = finished || asks_for(e, Subject::kFinished);
        events = events || asks_for(e, Subject::kKvEvents);
        if (!meets(got, e.value))
            return course_.differ(e.origin, subject_info(e.subject).name, text_of(e.value), text_of(got));
    }
    if (finished) requests_.forget_finished();
    if (events) blocks_.forget_events();
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
