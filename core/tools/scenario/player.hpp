// The course of one scenario over one engine: which steps of the file fall between the engine's steps, and which inside
// one. Internal to scenario/.
#pragma once
#include <algorithm>
#include <memory>

#include "base/clock.hpp"
#include "engine/engine.hpp"
#include "scenario/compare.hpp"
#include "scenario/play.hpp"
#include "scenario/scripted_proposer.hpp"
#include "scenario/work.hpp"

namespace patchbay::scenario {

// An engine's step is begun by the first step of the file that asks for its plan, and is back with `output`. In between
// the file is played from inside the engine (execution/script.hpp).
class Player final : execution::Script {
  public:
    static Result<std::unique_ptr<Player>> create(const Scenario&, const host::Registry&, host::Prober&);
    Played play();

  private:
    Player(const Scenario& s, const host::Registry& r, host::Prober& p) : scenario_(s), registry_(r), prober_(p) {}

    // ---- from inside a step of the engine ----
    enum class Back { kNow, kLater /* the next step is planned before this one is back */ };
    void planned(std::span<const pb_plan_item>) override;
    void sampled(std::span<const execution::ScriptedRows>) override;
    void follow_file(Back); // until it says what comes back

    // ---- steps of the file ----
    const Step& now() const { return scenario_.steps[std::min(at_, scenario_.steps.size() - 1)]; } // or the last one
    bool over() const { return difference_ || at_ == scenario_.steps.size(); }
    bool is_async() const;
    bool needs_engine_step() const;
    void engine_step();
    void settle();
    void act(const Step&);
    void add(const Arrival&);
    void expect(const step::Expect&);
    void count_down(const step::Run&);
    void take_drafts();
    void spend(uint64_t work); // of what the file may

    State state();
    Tokens tokens_of(const Prompt&) const;
    void differ(const std::string& what, const std::string& expected, const std::string& got); // in the step at hand
    void differ(const Step&, const std::string& what, const std::string& expected, const std::string& got);
    void differ(const config::Origin&, const std::string& what, const std::string& expected, const std::string& got);

    const Scenario& scenario_;
    const host::Registry& registry_;
    host::Prober& prober_;
    VirtualClock clock_;
    uint64_t start_ns_ = 0;
    std::optional<Difference> difference_;
    size_t at_ = 0;
    uint32_t left_ = 0; // steps of `run` or `drain`

    std::map<std::string, Known> requests_;
    std::map<engine::RequestId, std::string> names_;
    Endings finished_;
    Candidates candidates_; // of beams
    Blocks blocks_;
    DraftsById drafts_;
    const Step* draft_ = nullptr; // that they are of
    Tally tally_;
    uint64_t grammar_row_ = 0; // work of a row that samples under a grammar
    uint64_t engine_steps_ = 0, work_ = 0;

    // ---- the engine's step under way ----
    std::vector<pb_plan_item> plan_;
    const Step* output_ = nullptr; // what is to come back; null: made-up tokens
    bool in_hand_ = false;         // the file has said what comes back
    bool followed_ = false;        // the file was played in it
    bool in_step_ = false;
    bool step_in_flight_ = false;          // the one before it is on the device

    std::unique_ptr<engine::Engine> engine_; // goes first
};

}  // namespace patchbay::scenario
