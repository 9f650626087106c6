// Why the ranks cannot continue. A rank that loses another one fails too, so the most likely cause is kept until all
// ranks had time to report, and becomes the failure then. Part of HubState.
#pragma once
#include <cstdint>
#include <optional>

#include "base/result.hpp"

namespace patchbay::parallel {

class RankFailure {
  public:
    enum class Sign { kReported = 1, kClosed, kEnded }; // of a rank's fault; a later one is the more certain
    enum class Lasts { kForTheSession, kForGood };
    struct Cause {
        Sign sign = Sign::kReported;
        uint64_t decide_ns = 0; // when it becomes the failure, unless a more certain one appears
        Failure why;
        bool passes = false; // the fault ends only the session: the rank is well, and cannot do what was requested
    };

    // ---- the probable cause ----
    void suspect(Sign, uint64_t decide_ns, Failure);
    // A rank that ended. exited: with an exit code, which says less than the message that it sent before. False: this
    // is no news, or that message becomes the failure now; true: how it ended is to be suspected.
    bool ended(bool exited, uint64_t now);
    const Cause* due(uint64_t now) const; // null: none, or its time has not come

    // ---- the failure ----
    bool exists() const { return why_.has_value(); }
    const Failure& why() const { return *why_; } // it exists
    bool is_lasting() const { return exists() && lasts_ == Lasts::kForGood; }
    // The session fails with the first failure; a lasting one may still follow it. False: it changes nothing.
    bool changes(Lasts lasts) const { return !exists() || (lasts_ != Lasts::kForGood && lasts == Lasts::kForGood); }
    void set(Failure, Lasts, bool in_session); // it changes something
    void end_session(); // a failure of the session alone is over

  private:
    std::optional<Cause> cause_;
    std::optional<Failure> why_;
    Lasts lasts_ = Lasts::kForGood;
};

}  // namespace patchbay::parallel
