// A healthy scheduler, and schedulers each wrong in one way, as components of one library: the check that catches a
// component stands beside its name in specimens_test.cpp.
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "patchbay/sdk/step_packer.hpp"

namespace {

using patchbay::Plan;
using patchbay::SchedulerStep;

struct FirstCome {
    void plan(const SchedulerStep& step, Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting)
            if (!packer.admit(s)) break;
    }
};

// What a wrong one may change: the view before the healthy plan, the answer after it.
struct Tampered {
    pb_scheduler_in in;
    std::vector<pb_sequence> running, waiting;
    explicit Tampered(const pb_scheduler_in& from) : in(from) {
        for (const pb_sequence& s : SchedulerStep(from).running) running.push_back(s);
        for (const pb_sequence& s : SchedulerStep(from).waiting) waiting.push_back(s);
        in.sequence_stride = sizeof(pb_sequence);
        in.running = running.data();
        in.waiting = waiting.data();
    }
};

// The answer's buffers side by side, and one entry of what lies after them: what a wrong one writes to, by index.
template <class Entry>
class SideBySide {
  public:
    SideBySide(Entry* theirs, uint32_t count, uint32_t stride) : theirs_(theirs), stride_(stride), all_(count + 1) {
        for (size_t i = 0; i < all_.size(); ++i) std::memcpy(&all_[i], at(i), sizeof(Entry));
    }
    ~SideBySide() {
        for (size_t i = 0; i < all_.size(); ++i) std::memcpy(at(i), &all_[i], sizeof(Entry));
    }
    SideBySide(const SideBySide&) = delete;
    Entry* entries() { return all_.data(); }

  private:
    char* at(size_t i) { return reinterpret_cast<char*>(theirs_) + i * stride_; }

    Entry* theirs_;
    uint32_t stride_;
    std::vector<Entry> all_;
};

// Its table alone is by hand: T::plan(in, out) is called as the host calls it, but for the strides of the answer.
template <class T>
pb_status call_plan(void* self, const pb_scheduler_in* in, pb_scheduler_out* out) {
    T& scheduler = static_cast<patchbay::detail::Box<T>*>(self)->value;
    if constexpr (requires { T::kKeepsStrides; }) return scheduler.plan(*in, *out);
    SideBySide items(out->items, out->item_capacity, out->item_stride);
    SideBySide preempts(out->preempts, out->preempt_capacity, out->preempt_stride);
    pb_scheduler_out own = *out;
    own.items = items.entries();
    own.preempts = preempts.entries();
    own.item_stride = sizeof *own.items;
    own.preempt_stride = sizeof *own.preempts;
    const pb_status status = scheduler.plan(*in, own);
    out->item_count = own.item_count;
    out->preempt_count = own.preempt_count;
    return status;
}
template <class T>
struct Table {
    static constexpr pb_scheduler table{sizeof(pb_scheduler), 0, call_plan<T>, nullptr, nullptr, nullptr};
};
template <class T>
constexpr pb_component wrong(const char* name, const char* state = nullptr) {
    return patchbay::detail::component<T, Table<T>>(PB_SCHEDULER, PB_SCHEDULER_REVISION,
                                                    {name, "1.0.0", "wrong on purpose", state});
}

pb_status plan_well(const pb_scheduler_in& in, pb_scheduler_out& out) {
    Plan plan(out);
    FirstCome().plan(SchedulerStep(in), plan);
    return PB_OK;
}

uint32_t tokens_left(const pb_scheduler_in& in, const pb_scheduler_out& out) {
    uint32_t left = in.max_num_batched_tokens;
    for (uint32_t i = 0; i < out.item_count; ++i) left -= out.items[i].tokens;
    return left;
}

const pb_sequence* find(const patchbay::Sequences& all, uint64_t id) {
    for (const pb_sequence& s : all)
        if (s.id == id) return &s;
    return nullptr;
}

struct FailsOnAnEmptyView {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        return in.running_count + in.waiting_count == 0 ? PB_FAILED : plan_well(in, out);
    }
};

struct Throws {
    pb_status plan(const pb_scheduler_in&, pb_scheduler_out&) { throw std::runtime_error("this is not caught"); }
};

struct WritesPastItsBuffer {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        out.items[out.item_capacity] = {1, 1, 0};
        return plan_well(in, out);
    }
};

struct WritesIntoWhatIsReserved {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        for (uint32_t i = 0; i < out.item_count; ++i) out.items[i].reserved = 7;
        return PB_OK;
    }
};

struct PlansAStranger {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        if (out.item_count < out.item_capacity && tokens_left(in, out) > 0)
            out.items[out.item_count++] = {0xABCDEF0123, 1, 0};
        return PB_OK;
    }
};

struct PlansTwice {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        if (out.item_count == 0 || out.item_count == out.item_capacity || tokens_left(in, out) == 0) return PB_OK;
        if (find(SchedulerStep(in).running, out.items[0].id)) out.items[out.item_count++] = {out.items[0].id, 1, 0};
        return PB_OK;
    }
};

struct Overspends {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        Tampered more(in);
        more.in.max_num_batched_tokens += 1;
        return plan_well(more.in, out);
    }
};

struct SeatsOneTooMany {  // in the place of the last one that runs
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        const SchedulerStep step(in);
        if (out.item_count < 2 || out.preempt_count > 0 || in.running_count < in.max_num_seqs || !step.chunked())
            return PB_OK;
        for (const pb_sequence& s : step.waiting)
            if (!(s.flags & PB_SEQ_NO_CHUNK)) {
                out.items[out.item_count - 1] = {s.id, 1, 0};
                break;
            }
        return PB_OK;
    }
};

struct PlansATokenTooMany {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        if (out.item_count == 0 || tokens_left(in, out) == 0) return PB_OK;
        const SchedulerStep step(in);
        const pb_sequence* s = find(step.running, out.items[0].id);
        if (s && out.items[0].tokens == patchbay::remaining(*s)) out.items[0].tokens += 1;
        return PB_OK;
    }
};

struct PlansWhatIsInFlight {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        Tampered again(in);
        for (pb_sequence& s : again.running) s.in_flight = 0;
        return plan_well(again.in, out);
    }
};

struct IgnoresTheThreshold {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        Tampered free(in);
        free.in.long_prefill_token_threshold = 0;
        return plan_well(free.in, out);
    }
};

struct SplitsWhatMayNotBeSplit {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        Tampered free(in);
        free.in.flags |= PB_STEP_CHUNKED_PREFILL;
        for (pb_sequence& s : free.waiting) s.flags &= ~uint32_t{PB_SEQ_NO_CHUNK};
        return plan_well(free.in, out);
    }
};

struct PreemptsWhoWaits {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        const SchedulerStep step(in);
        if (out.preempt_count == out.preempt_capacity || step.waiting.empty()) return PB_OK;
        const pb_sequence& last = step.waiting[step.waiting.size() - 1];
        for (uint32_t i = 0; i < out.item_count; ++i)
            if (out.items[i].id == last.id) return PB_OK;
        out.preempts[out.preempt_count++] = {last.id, PB_PREEMPT_RECOMPUTE, 0};
        return PB_OK;
    }
};

struct TrustsItsOwnSizeof {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        for (const bool runs : {true, false}) {  // until what it reads cannot be
            const pb_sequence* first = runs ? in.running : in.waiting;
            for (uint32_t i = 1; i < (runs ? in.running_count : in.waiting_count); ++i)
                if (first[i].prompt_tokens > 100'000) return PB_FAILED;
        }
        return plan_well(in, out);
    }
};

struct WritesByItsOwnSizeof {
    static constexpr bool kKeepsStrides = true;
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        pb_scheduler_out own = out;
        own.item_stride = sizeof(pb_plan_item);
        const pb_status status = plan_well(in, own);
        out.item_count = own.item_count;
        out.preempt_count = own.preempt_count;
        return status;
    }
};

std::atomic<uint32_t> objects = 0;  // the fault itself: a memory that outlives the object

struct DependsOnWhichObjectItIs {
    uint32_t mine = objects++, plans = 0;
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        if (mine % 2 && ++plans > 5) std::reverse(out.items, out.items + out.item_count);
        return PB_OK;
    }
};

struct KeepsTheView {  // and turns the plan round where the one before is not as it was
    const pb_scheduler_in* last = nullptr;
    uint64_t step = 0;
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        const bool as_it_was = !last || last->step == step;
        last = &in;
        step = in.step;
        plan_well(in, out);
        if (!as_it_was) std::reverse(out.items, out.items + out.item_count);
        return PB_OK;
    }
};

struct FailsOnceConfigured {
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("pace", "1", 1, 9, "", "whatever it is, it may not change", PB_PARAM_HOT)};
    bool configured = false;
    void configure(const patchbay::Context&) { configured = true; }
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        return configured ? PB_FAILED : plan_well(in, out);
    }
};

struct FailsOnceItRefused {
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("pace", "1", 1, 9, "", "which it takes over before it looks at it", PB_PARAM_HOT)};
    bool configured = false;
    void configure(const patchbay::Context&) {
        configured = true;
        throw patchbay::Error(PB_INVALID, "too fast");
    }
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        return configured ? PB_FAILED : plan_well(in, out);
    }
};

struct TakesNoOtherValue : FirstCome {
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("pace", "4", 1, 9, "", "which cannot be set after all", PB_PARAM_HOT)};
    void configure(const patchbay::Context&) { throw patchbay::Error(PB_UNSUPPORTED, "it is as it is"); }
};

struct RefusesSomeValues : FirstCome {
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("low", "4", 1, 9, "", "not above high", PB_PARAM_HOT),
        patchbay::param::integer("high", "4", 1, 9, "", "not below low", PB_PARAM_HOT)};
    explicit RefusesSomeValues(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) {
        if (context.get<int>("low") > context.get<int>("high")) throw patchbay::Error(PB_INVALID, "low is above high");
    }
};

struct StarvesLongPrompts {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        plan_well(in, out);
        const SchedulerStep step(in);
        const auto starved = [&](const pb_plan_item& i) {
            const pb_sequence* s = find(step.waiting, i.id);
            return s && s->prompt_tokens > 15;
        };
        out.item_count =
            static_cast<uint32_t>(std::remove_if(out.items, out.items + out.item_count, starved) - out.items);
        return PB_OK;
    }
};

struct PlansOnceAStep {  // or never again
    uint64_t last = UINT64_MAX;
    bool asked_again = false;
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) {
        asked_again = asked_again || in.step == last;
        last = in.step;
        plan_well(in, out);
        if (asked_again) out.item_count = out.preempt_count = 0;
        return PB_OK;
    }
};

// ---- of every kind ---------------------------------------------------------------------------

struct ForgetsItsState {
    uint32_t plans = 0;
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) { return ++plans, plan_well(in, out); }
    void save(patchbay::Writer& w) const { w.put("plans", plans); }
    void load(const patchbay::Reader&) {}
};

struct PlansWell {
    pb_status plan(const pb_scheduler_in& in, pb_scheduler_out& out) { return plan_well(in, out); }
};

constexpr pb_component one_object_for_all() {
    pb_component c = wrong<PlansWell>("one_object_for_all");
    c.create = [](const pb_host* host, const pb_config* config, void** self) -> pb_status {
        static patchbay::detail::Box<PlansWell> only(host, *config);
        *self = &only;
        return PB_OK;
    };
    c.destroy = [](void*) {};
    return c;
}

constexpr pb_component trusts_saved_bytes() {
    pb_component c = wrong<ForgetsItsState>("trusts_saved_bytes", "trusting/1");
    c.save = [](void*, const pb_sink* sink) -> pb_status {
        sink->put(sink->ctx, "1234", 4);
        return PB_OK;
    };
    c.load = [](void*, const char*, pb_str bytes) -> pb_status {
        (void)std::string(bytes.data, bytes.size).at(3);  // throws for what is shorter
        return PB_OK;
    };
    return c;
}

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::scheduler<FirstCome>({.name = "healthy", .version = "1.0.0", .summary = "first come, first served"}),
    wrong<FailsOnAnEmptyView>("fails_on_an_empty_view"), wrong<Throws>("throws"),
    wrong<WritesPastItsBuffer>("writes_past_its_buffer"),
    wrong<WritesIntoWhatIsReserved>("writes_into_what_is_reserved"), wrong<PlansAStranger>("plans_a_stranger"),
    wrong<PlansTwice>("plans_twice"), wrong<Overspends>("overspends"), wrong<SeatsOneTooMany>("seats_one_too_many"),
    wrong<PlansATokenTooMany>("plans_a_token_too_many"), wrong<PlansWhatIsInFlight>("plans_what_is_in_flight"),
    wrong<IgnoresTheThreshold>("ignores_the_threshold"), wrong<SplitsWhatMayNotBeSplit>("splits_what_may_not_be_split"),
    wrong<PreemptsWhoWaits>("preempts_who_waits"), wrong<TrustsItsOwnSizeof>("trusts_its_own_sizeof"),
    wrong<WritesByItsOwnSizeof>("writes_by_its_own_sizeof"),
    wrong<DependsOnWhichObjectItIs>("depends_on_which_object_it_is"), wrong<StarvesLongPrompts>("starves_long_prompts"),
    wrong<PlansOnceAStep>("plans_once_a_step"), wrong<KeepsTheView>("keeps_the_view"),
    wrong<FailsOnceConfigured>("fails_once_configured"), wrong<FailsOnceItRefused>("fails_once_it_refused"),
    patchbay::scheduler<TakesNoOtherValue>({.name = "takes_no_other_value", .version = "1.0.0", .summary = "stiff"}),
    patchbay::scheduler<RefusesSomeValues>({.name = "healthy_but_strict", .version = "1.0.0", .summary = "strict"}),
    wrong<ForgetsItsState>("forgets_its_state", "forgetful/1"), one_object_for_all(), trusts_saved_bytes())
