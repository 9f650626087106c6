// A healthy device of plain loops, and devices each wrong in one way, as components of one library.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "optional_ops.hpp"
#include "plain_loops.hpp"
#include "quantised_weights.hpp"
#include "recording_device.hpp"

namespace {

using namespace specimens;

struct HasNoMemory : Loops {
    pb_device_info info() const {
        auto i = Loops::info();
        i.memory_total = 0;
        return i;
    }
};

struct CopiesToTheWrongPage : Loops {
    void copy_page(void* to, const void* from, uint64_t n) { std::memcpy(static_cast<char*>(to) - 64, from, n); }
};

struct PreparesAnyRole : Loops {
    pb_weight* prepare(pb_weight_source s) {
        if (s.role == 99) s.role = PB_WEIGHT_LINEAR;
        return Loops::prepare(s);
    }
};

struct ForgetsTheBias : Loops {
    ForgetsTheBias() {
        ops_.linear = [](void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
            const pb_weight bare{w->rows, w->cols, w->values, {}};
            linear(ctx, out, x, &bare);
        };
    }
};

struct TakesTheRowBefore : Loops {
    TakesTheRowBefore() {
        ops_.embedding = [](void*, const pb_tensor* out, const pb_weight* w, const pb_tensor* ids) {
            for (int64_t t = 0; t < out->shape[0]; ++t)
                std::memcpy(row(*out, t), &w->values[size_t(std::max(id(*ids, t) - 1, 0) * w->cols)],
                            size_t(w->cols) * 4);
        };
    }
};

struct NormsWithoutWeights : Loops {
    NormsWithoutWeights() {
        ops_.rms_norm = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
            norm_rows(*out, *x, {1, w->cols, std::vector<float>(w->values.size(), 1), {}}, eps);
        };
    }
};

struct LeavesTheResidual : Loops {
    LeavesTheResidual() {
        ops_.add_rms_norm = [](void*, const pb_tensor* out, const pb_tensor* residual, const pb_tensor*,
                               const pb_weight* w, float eps) { norm_rows(*out, *residual, *w, eps); };
    }
};

struct RotatesNeighbours : Loops {
    RotatesNeighbours() {
        ops_.rope = [](void*, const pb_tensor* x, const pb_tensor* positions, const pb_weight* f, float scale) {
            rotate(*x, *positions, *f, scale, 1, 2);
        };
    }
};

struct GatesByUp : Loops {
    GatesByUp() {
        ops_.silu_mul = [](void*, const pb_tensor* out, const pb_tensor* in) {
            const int64_t n = out->shape[1];
            for (int64_t t = 0; t < out->shape[0]; ++t)
                for (int64_t i = 0; i < n; ++i)
                    row(*out, t)[i] =
                        float(row(*in, t)[n + i] / (1 + std::exp(-double{row(*in, t)[n + i]})) * row(*in, t)[i]);
        };
    }
};

struct AddsTwice : Loops {
    AddsTwice() {
        ops_.add = [](void* ctx, const pb_tensor* a, const pb_tensor* b) { add(ctx, a, b), add(ctx, a, b); };
    }
};

struct GathersFromTheEnd : Loops {
    GathersFromTheEnd() {
        ops_.gather_rows = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
            for (int64_t t = 0; t < out->shape[0]; ++t)
                std::memcpy(row(*out, t), row(*x, x->shape[0] - 1 - id(*rows, t)), size_t(out->shape[1]) * 4);
        };
    }
};

struct TakesTheTokenBefore : Loops {
    TakesTheTokenBefore() {
        ops_.fill_placeholders = [](void*, const pb_tensor* ids, const pb_tensor* sampled) {
            for (int64_t t = 0; t < ids->shape[0]; ++t) {
                int32_t& at = static_cast<int32_t*>(ids->data)[t];
                if (at < 0) at = id(*sampled, std::max(0, -at - 2));
            }
        };
    }
};

struct LooksTooLate : Loops { // when it is waited for, and not in order with ops
    struct Copy {
        void* to;
        const void* from;
        uint64_t bytes;
    };
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> submitted;
    static void perform(const std::vector<Copy>& copies) {
        for (const Copy& c : copies) std::memcpy(c.to, c.from, c.bytes);
    }
    void to_host_async(void* to, const void* from, uint64_t bytes) { open.push_back({to, from, bytes}); }
    void end_step() { perform(std::exchange(open, {})); }
    void submit_step() { submitted.push_back(std::exchange(open, {})); }
    void wait_step() {
        perform(submitted.front());
        submitted.pop_front();
    }
};

struct BringsPagesBackLate : Loops { // at the end of the step
    std::vector<std::function<void()>> open;
    void* host_alloc(uint64_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
    void host_free(void* memory) noexcept { std::free(memory); }
    void page_to_host(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
    void page_to_device(void* to, const void* from, uint64_t bytes) {
        open.push_back([=] { std::memcpy(to, from, bytes); });
    }
    void end_step() {
        for (const auto& copy : std::exchange(open, {})) copy();
    }
};

struct RoundsBatchesOtherwise : Loops {
    RoundsBatchesOtherwise() {
        ops_.silu_mul = [](void* ctx, const pb_tensor* out, const pb_tensor* in) {
            silu_mul(ctx, out, in);
            for (int64_t t = 0; out->shape[0] > 1 && t < out->shape[0]; ++t)
                for (int64_t i = 0; i < out->shape[1]; ++i) row(*out, t)[i] *= 1.000001f;
        };
    }
};

struct WritesBetweenRows : Loops {
    WritesBetweenRows() {
        ops_.silu_mul = [](void* ctx, const pb_tensor* out, const pb_tensor* in) {
            silu_mul(ctx, out, in);
            for (int64_t t = 0; t < out->shape[0]; ++t)  // as if rows were dense, and rounded up to a vector
                for (int64_t i = out->shape[1]; i < std::min<int64_t>(out->strides[0], out->shape[1] + 3); ++i)
                    row(*out, t)[i] = 0;
        };
    }
};

struct IsAlwaysAlone : Loops {
    void connect(const pb_group&) {
        ops_.all_reduce = [](void*, const pb_tensor*) {};
        ops_.all_gather = [](void*, const pb_tensor*, const pb_tensor*) {};
    }
    void disconnect() noexcept {}
};

struct GatesTooLate : Loops { // at the end of the step, by arguments that it should have copied
    GatesTooLate() {
        ops_.ctx = this;
        ops_.silu_mul = [](void* ctx, const pb_tensor* out, const pb_tensor* in) {
            static_cast<GatesTooLate*>(ctx)->late_.emplace_back(out, in);
        };
    }
    void end_step() {
        for (const auto& [out, in] : std::exchange(late_, {}))
            if (out->rank == 2) silu_mul(nullptr, out, in); // else it would crash
    }
    std::vector<std::pair<const pb_tensor*, const pb_tensor*>> late_;
};

struct WritesPastAnArgument : Loops { // of one that is lent: other checks have them on the stack
    WritesPastAnArgument() {
        ops_.linear = [](void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
            linear(nullptr, out, x, w);
            if (!on_the_stack(out)) const_cast<pb_tensor*>(out)[1].rank = 0;
        };
    }
    static bool on_the_stack(const void* p) {
        const char here = 0;
        const auto distance = reinterpret_cast<intptr_t>(p) - reinterpret_cast<intptr_t>(&here);
        return distance > -(1 << 20) && distance < 1 << 20;
    }
};

struct KeepsTheExpertsInAGraph : specimens::Recorder {
    KeepsTheExpertsInAGraph() { ops_.expert_linear = Op<specimens::expert_linear>::call; }
};

struct KeepsNoTime : Loops {
    pb_device_info info() const {
        pb_device_info i = Loops::info();
        i.computes = 0;
        return i;
    }
};

struct RunsWhatItShouldRecord : Loops { // and has nothing to launch
    pb_device_info info() const {
        pb_device_info i = Loops::info();
        i.host_memory = 0;
        return i;
    }
    void graph_begin() {}
    pb_graph* graph_end() { return new pb_graph; }
    void graph_launch(pb_graph*) {}
    void graph_free(pb_graph* graph) noexcept { delete graph; }
    uint64_t graph_bytes(const pb_graph*) const noexcept { return 1; }
};

template <class T>
constexpr pb_component component(const char* name) {
    return patchbay::device<T>({.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Loops>("healthy"), component<specimens::Recorder>("healthy_recorder"),
                component<HasNoMemory>("has_no_memory"),
                component<CopiesToTheWrongPage>("copies_to_the_wrong_page"),
                component<PreparesAnyRole>("prepares_any_role"), component<ForgetsTheBias>("forgets_the_bias"),
                component<TakesTheRowBefore>("takes_the_row_before"),
                component<NormsWithoutWeights>("norms_without_weights"),
                component<LeavesTheResidual>("leaves_the_residual"), component<RotatesNeighbours>("rotates_neighbours"),
                component<GatesByUp>("gates_by_up"), component<AddsTwice>("adds_twice"),
                component<GathersFromTheEnd>("gathers_from_the_end"),
                component<specimens::ForgetsTheOrder<Loops>>("forgets_the_order"),
                component<specimens::TakesTheHighHalfFirst<Loops>>("takes_the_high_half_first"),
                component<specimens::HalvesTheSmallest<Loops>>("halves_the_smallest"),
                component<TakesTheTokenBefore>("takes_the_token_before"), component<LooksTooLate>("looks_too_late"),
                component<BringsPagesBackLate>("brings_pages_back_late"),
                component<RoundsBatchesOtherwise>("rounds_batches_otherwise"),
                component<WritesBetweenRows>("writes_between_rows"), component<GatesTooLate>("gates_too_late"),
                component<WritesPastAnArgument>("writes_past_an_argument"),
                component<specimens::KeepsTheExperts<Loops>>("keeps_the_experts"),
                component<KeepsTheExpertsInAGraph>("keeps_the_experts_in_a_graph"),
                component<KeepsNoTime>("keeps_no_time"),
                component<IsAlwaysAlone>("is_always_alone"),
                component<RunsWhatItShouldRecord>("runs_what_it_should_record"),
                component<specimens::ForgetsTheMean<Loops>>("forgets_the_mean"),
                component<specimens::FoldsAtZero<Loops>>("folds_at_zero"),
                component<specimens::GelusBySigmoid<Loops>>("gelus_by_sigmoid"),
                component<specimens::GelusTheOtherHalf<Loops>>("gelus_the_other_half"),
                component<specimens::TurnsSiluAround<Loops>>("turns_silu_around"),
                component<specimens::GelusByTanh<Loops>>("gelus_by_tanh"),
                component<specimens::GelusExactlyTheOtherHalf<Loops>>("gelus_exactly_the_other_half"),
                component<specimens::OpensEveryGate<Loops>>("opens_every_gate"),
                component<specimens::ClampsNoGate<Loops>>("clamps_no_gate"),
                component<specimens::AddsTheFactor<Loops>>("adds_the_factor"),
                component<specimens::CapsHard<Loops>>("caps_hard"),
                component<specimens::RanksFromTheLeast<Loops>>("ranks_from_the_least"),
                component<specimens::AsksOneExpert<Loops>>("asks_one_expert"),
                component<specimens::SumsWithoutWeights<Loops>>("sums_without_weights"),
                component<specimens::GatesTheUps<Loops>>("gates_the_ups"),
                component<specimens::ForgetsTheRowsBefore<Loops>>("forgets_the_rows_before"),
                component<specimens::ScansWithoutAState<Loops>>("scans_without_a_state"))
