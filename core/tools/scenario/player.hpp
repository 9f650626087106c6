// The course of one scenario over one engine: which steps of the file fall between the engine's steps, and which inside
// one. Internal to scenario/.
#pragma once
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "engine/engine.hpp"
#include "scenario/compare.hpp"
#include "scenario/course.hpp"
#include "scenario/outputs.hpp"
#include "scenario/play.hpp"
#include "scenario/requests.hpp"

namespace patchbay::scenario {

// An engine's step is begun by the first step of the file that asks for its plan, and is back with `output`. In between
// the file is played from inside the engine (execution/script.hpp).
class Player final : execution::Script {
  public:
    static Result<std::unique_ptr<Player>> create(const Scenario&, const host::Registry&, host::Prober&);
    Played play();

  private:
    struct EngineStep { // the one under way, or the latest one
        std::vector<pb_plan_item> plan;
        const Step* output = nullptr; // what is to come back; null: made-up tokens
        bool in_hand = false;         // the file has said what comes back
        bool followed = false;        // the file was played in it
        bool under_way = false;
    };

    Player(const Scenario&, const host::Registry&, host::Prober&);

    // ---- from inside a step of the engine ----
    enum class Back { kNow, kLater /* the next step is planned before this one is back */ };
    void planned(std::span<const pb_plan_item>) override;
    void sampled(std::span<const execution::ScriptedRows>) override;
    void follow_file(Back); // until it says what comes back

    // ---- steps of the file ----
    bool go_on(); // until a step of the engine is due; false: the file is over
    bool begin_step();
    void end_step(const engine::StepReport&);
    void check(const engine::StepReport&);
    void settle();
    void act(const Step&);
    void expect(const step::Expect&);
    void spend(uint64_t work); // of what the file may
    State state();

    const Scenario& scenario_;
    const host::Registry& registry_;
    host::Prober& prober_;
    VirtualClock clock_;
    Course course_;
    Requests requests_;
    Blocks blocks_;
    NextDrafts drafts_;
    Tally tally_;
    const uint64_t grammar_row_; // work of a row that samples under a grammar
    uint64_t engine_steps_ = 0, work_ = 0;
    EngineStep step_;
    bool step_in_flight_ = false; // the one before it is on the device
    std::unique_ptr<engine::Engine> engine_; // goes first
};

}  // namespace patchbay::scenario
