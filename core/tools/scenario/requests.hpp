// The requests of a scenario by their names: which were added, and what came of them. Part of Player.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.hpp"
#include "scenario/compare.hpp"
#include "scenario/course.hpp"
#include "scenario/work.hpp"

namespace patchbay::scenario {

class Requests {
  public:
    // start_ns: the clock at the scenario's 0 ms.
    Requests(const Scenario& s, uint64_t start_ns) : eos_(s.model.eos.size()), start_ns_(start_ns) {}

    // To the engine, which this outlives, as does the arrival. A difference: it is refused, or should have been.
    void add(const Arrival&, engine::Engine&, Course&);

    engine::RequestId id_of(const std::string& name) const { return known_.at(name).id; }
    const std::string& name_of(engine::RequestId id) const { return names_.at(id); }
    const std::map<std::string, Known>& known() const { return known_; }
    const std::map<engine::RequestId, std::string>& names() const { return names_; }
    const Endings& finished() const { return finished_; } // since forget_finished()
    void forget_finished() { finished_.clear(); }
    const Candidates& candidates() const { return candidates_; } // of beams

  private:
    engine::Request made_of(const Arrival&);
    Tokens tokens_of(const Prompt&) const;
    void note(const std::string& name, const engine::RequestOutput&);

    const size_t eos_; // tokens that end an output
    const uint64_t start_ns_;
    std::map<std::string, Known> known_;
    std::map<engine::RequestId, std::string> names_;
    Endings finished_;
    Candidates candidates_;
};

}  // namespace patchbay::scenario
