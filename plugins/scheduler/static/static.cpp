// static - static batching, the baseline of the field: a batch is formed when nothing runs, and no request joins until
// all of it has ended.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Static {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("batch_size", "0", 0, 65536, "sequences", "sequences in a batch; 0: max_num_seqs",
                                 PB_PARAM_HOT)};

    explicit Static(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { batch_size_ = context.get<uint32_t>("batch_size"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        // A batch too large for one step's token budget is still being formed while its first prompts are computed;
        // requests that were preempted out of it are admitted to it again, and while one waits it has not ended.
        if (step.running.empty() && !any_returns(step)) open_ = batch_size_ ? batch_size_ : step.raw.max_num_seqs;
        for (const pb_sequence& s : step.waiting) {
            if (open_ == 0 && is_new(s)) break;
            if (open_ == 0 && !returns(s)) continue; // a further output, which may stand before one that returns
            if (!packer.admit(s)) break;
            if (!returns(s)) open_ -= 1;
        }
        if (packer.tokens_left() > 0) open_ = 0;
    }

    void save(patchbay::Writer& w) const { w.put("open", open_); }
    void load(const patchbay::Reader& r) { r.get("open", open_); }

  private:
    static bool returns(const pb_sequence& s) { return s.flags & PB_SEQ_PREEMPTED; }
    // From the first one of these on, all that wait are new.
    static bool is_new(const pb_sequence& s) { return s.id == s.group && !returns(s); }
    static bool any_returns(const patchbay::SchedulerStep& step) {
        for (const pb_sequence& s : step.waiting) {
            if (returns(s)) return true;
            if (is_new(s)) return false;
        }
        return false;
    }

    uint32_t batch_size_;
    uint32_t open_ = 0; // places still open in the batch that is being formed
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Static>({.name = "static",
                                             .version = "1.0.0",
                                             .summary = "static batching: no request joins a running batch",
                                             .state = "static/1"}))
