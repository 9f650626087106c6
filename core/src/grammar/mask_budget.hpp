// What a mask may cost, and the fault where it costs more: hostile input ends there. Used by the machine that runs an
// automaton, and by what makes masks with it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace patchbay::grammar {

class MaskBudget {
  public:
    static constexpr uint64_t kMaxWork = 20'000'000; // items and edges looked at between two calls of refill()

    void refill(uint64_t work = kMaxWork) { work_ = work; }
    bool spend(uint64_t n) { // false: there is a fault
        if (!fault_.empty()) return false;
        if (n <= work_) {
            work_ -= n;
            return true;
        }
        set_fault("the grammar is too ambiguous here: a mask takes more than " + std::to_string(kMaxWork) + " steps");
        return false;
    }
    // The first one stays. Results since then must not be used.
    void set_fault(std::string text) {
        if (fault_.empty()) fault_ = std::move(text);
    }
    const std::string& fault() const { return fault_; }
    void clear_fault() { fault_.clear(); }

  private:
    uint64_t work_ = kMaxWork;
    std::string fault_;
};

}  // namespace patchbay::grammar
