// First come, first served out of a queue of its own, which it knows from arrived(), finished() and resync() alone; and
// it counts its plans, which is state that a swap carries. Built in several versions that differ in what they save:
//   COUNTING_VERSION 1: plans; 2: plans and moves; 3: as 1, but reads only its own state; 4: too much of it; 5: fails
//   to save where there are 509 KV blocks.
#include <set>

#include "patchbay/sdk/step_packer.hpp"

namespace {

class Counting {
  public:
    explicit Counting(const patchbay::Context& context) : metrics_(context.host()) {}

    void arrived(const pb_sequence& s) { queue_.insert(s.id); }
    void finished(const pb_finished& f) { queue_.erase(f.id); }
    void resync(const patchbay::SchedulerStep& step) {
        queue_.clear();
        for (const pb_sequence& s : step.waiting) queue_.insert(s.id);
        moves_ += 1;
        metrics_.set("moves", static_cast<double>(moves_));
    }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        plans_ += 1;
        elsewhere_ = step.raw.total_pages == 509;
        metrics_.set("plans", static_cast<double>(plans_));
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting) {
            if (!(s.flags & PB_SEQ_PREEMPTED) && !queue_.contains(s.id)) continue; // it was not announced
            if (!packer.admit(s)) break;
        }
    }

    void save(patchbay::Writer& w) const {
        if (COUNTING_VERSION == 5 && elsewhere_) throw patchbay::Error(PB_FAILED, "has lost its notes");
        w.put("plans", plans_);
        if (COUNTING_VERSION == 2) w.put("moves", moves_);
        if (COUNTING_VERSION == 4)
            for (uint32_t i = 0; i < 100'000; ++i) w.put("field_" + std::to_string(i), i);
    }
    void load(const patchbay::Reader& r) {
        if (COUNTING_VERSION == 3 && r.schema() != "counting/3")
            throw patchbay::Error(PB_BAD_STATE, "cannot read state '" + std::string(r.schema()) + "'");
        r.get("plans", plans_);
        r.get("moves", moves_);
    }

  private:
    patchbay::Metrics metrics_;
    std::set<uint64_t> queue_;
    uint64_t plans_ = 0, moves_ = 0;
    bool elsewhere_ = false; // in the engine of the tests, where no probe is
};

}  // namespace

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
PATCHBAY_PLUGIN(patchbay::scheduler<Counting>({.name = "counting_" TEXT(COUNTING_VERSION),
                                               .version = "1.0.0",
                                               .summary = "for tests",
                                               .state = "counting/" TEXT(COUNTING_VERSION)}))
