// How far a scenario's file is played, and the first place at which what happened is not what it says. Part of Player.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "scenario/play.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

class Course {
  public:
    explicit Course(const Scenario& s) : steps_(s.steps) {}

    const Step& now() const;  // the step at hand, or the last one
    bool over() const { return difference_ || at_ == steps_.size(); }
    void advance() { at_ += !difference_; } // to the next step
    void count_down(const step::Run&);      // one of its steps was made: the last one advances
    bool count_down(const step::Drain&);    // one of its steps is to be made; false: it may have no more
    void end_drain() { left_ = 0; }

    // Only the first is kept. In the step at hand; in another one; at a place within the step at hand.
    void differ(const std::string& what, const std::string& expected, const std::string& got);
    void differ(const Step&, const std::string& what, const std::string& expected, const std::string& got);
    void differ(const config::Origin&, const std::string& what, const std::string& expected, const std::string& got);
    const std::optional<Difference>& difference() const { return difference_; }

  private:
    void keep(Difference);

    const std::vector<Step>& steps_;
    size_t at_ = 0;
    uint32_t left_ = 0; // steps of `run` or `drain`
    std::optional<Difference> difference_;
};

}  // namespace patchbay::scenario
