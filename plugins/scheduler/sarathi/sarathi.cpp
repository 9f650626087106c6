// sarathi - decodes first, then prompts in chunks of a fixed size, so that no step is long.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Sarathi {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("chunk", "256", 1, 1 << 20, "tokens",
                                 "of a step, decodes and prompts together, beside drafts; decodes go in any case",
                                 PB_PARAM_HOT)};

    explicit Sarathi(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { chunk_ = context.get<uint32_t>("chunk"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_decodes(patchbay::arrived_later);
        uint32_t decodes = 0; // without drafts, which a step takes beside its chunk: they would keep prompts out
        for (const pb_sequence& s : step.running)
            if (patchbay::decoding(s)) decodes += patchbay::remaining(s) - s.draft_tokens;
        decodes = std::min(decodes, step.raw.max_num_batched_tokens - packer.tokens_left()); // some may be preempted
        packer.limit_prompts(chunk_ - std::min(chunk_, decodes));
        packer.keep_prompts(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting)
            if (!packer.admit(s)) break;
    }

  private:
    uint32_t chunk_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Sarathi>(
    {.name = "sarathi", .version = "1.0.0", .summary = "decodes first, then prompts in fixed chunks"}))
