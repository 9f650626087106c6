// What an engine has, as the values that a scenario expects: taken from it, and written as a file would write them.
// Used by scenario/play.cpp.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/view.hpp"
#include "scenario/blocks.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

struct Known { // of one request
    engine::RequestId id = 0;
    Tokens output;
    std::string text;                            // of it
    engine::FinishReason finish = engine::FinishReason::kNone;
    std::string stop_reason;                     // from its end on, like what follows
    uint32_t cached_tokens = 0, preemptions = 0;
};

struct Tally { // over the engine's steps so far
    uint64_t steps = 0; // that computed something
    uint64_t hit_tokens = 0, query_tokens = 0, drafted_tokens = 0, accepted_tokens = 0, plan_faults = 0,
             kv_policy_faults = 0;

    void add(const engine::StepReport&);
};

struct State { // at one moment
    const std::map<std::string, Known>& requests;
    const std::map<engine::RequestId, std::string>& names;
    const std::vector<pb_plan_item>& plan; // of the step under way, or the latest one
    engine::View engine;
    const Endings& finished; // not asked for yet
    const Blocks& blocks;
    Tally tally;
    std::string policy;
};

// The value to hold against `expected`: of its alternative, and with its requests where it names some of many.
Value value_of(Subject, const Value& expected, const State&);
bool meets(const Value& got, const Value& expected);
std::string text_of(const Value&); // {a: 80, b: 20}

}  // namespace patchbay::scenario
