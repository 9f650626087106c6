#include "conformance/device_case.hpp"

#include <cstring>

#include "patchbay/sdk/op_list.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

template <class T>
T lent(LentMemory&, T value) { // numbers, and what lives as long as the component
    return value;
}
template <class T>
const T* lent_struct(LentMemory& memory, const T* value) {
    return value ? memory.lend(*value) : nullptr;
}
template <>
const pb_tensor* lent(LentMemory& memory, const pb_tensor* t) {
    return lent_struct(memory, t);
}
template <>
const pb_scan* lent(LentMemory& memory, const pb_scan* s) {
    return lent_struct(memory, s);
}
template <>
const pb_state* lent(LentMemory& memory, const pb_state* s) {
    return lent_struct(memory, s);
}

}  // namespace

template <auto Op>
auto LentOps::lending() {
    return []<class... Args>(void (*pb_ops::*)(void*, Args...)) -> void (*)(void*, Args...) {
        return [](void* ctx, Args... args) {
            auto& self = *static_cast<LentOps*>(ctx);
            (self.real_.*Op)(self.real_.ctx, lent<Args>(self.memory_, args)...);
            self.intact_ &= self.memory_.end_call();
        };
    }(Op);
}

LentOps::LentOps(const pb_ops& real) : real_(real) {
    ops_.struct_size = sizeof ops_;
    ops_.ctx = this;
#define PB_LEND(op) \
    if (real.op) ops_.op = lending<&pb_ops::op>();
    PB_EACH_OP(PB_LEND)
#undef PB_LEND
    if (!real.expert_linear) return;
    ops_.expert_linear = [](void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                            uint32_t count, const pb_tensor* ids) {
        const pb_weight* const* const lent = static_cast<LentOps*>(ctx)->memory_.lend(experts, count);
        lending<&pb_ops::expert_linear>()(ctx, out, x, lent, count, ids);
    };
}

pb_ops ops_of(const host::Component& c) {
    const pb_ops* const given = static_cast<const pb_device*>(c.type().vtable)->ops(c.self());
    return widened<pb_ops>(given, given->struct_size);
}

Result<Bench> Bench::create(const host::Component& c, Rows rows, Steps steps) {
    PB_TRY(const pb_device_info info, (filled<&pb_device::info, pb_device_info>(c)));
    return Bench(c, info, rows, steps);
}

Bench::Bench(const host::Component& c, const pb_device_info& info, Rows rows, Steps steps)
    : component_(c), info_(info), steps_(steps),
      lent_ops_(steps != Steps::kRun ? std::make_unique<LentOps>(ops_of(c)) : nullptr),
      arrays_(c, info, rows, steps == Steps::kLent), weights_(c, steps == Steps::kLent) {}

Bench::~Bench() {
    for (pb_graph* g : graphs_) graph_calls().graph_free(component_.self(), g);
}

float Bench::rounded(float x) const { return info_.activation_dtype == PB_BF16 ? bf16_to_f32(f32_to_bf16(x)) : x; }

Floats Bench::rounded(Floats values) const {
    for (float& x : values) x = rounded(x);
    return values;
}

Result<> Bench::step(const std::function<void(const pb_ops&)>& f) {
    PB_CHECK(component_.check(table().begin_step(component_.self()), "begin_step"));
    Result<> done;
    if (steps_ == Steps::kReplay) done = replay(f);
    else f(ops());
    const Result<> ended = component_.check(table().end_step(component_.self()), "end_step");
    if (done && lent_ops_ && !lent_ops_->intact()) return fail("it writes past the end of an argument");
    return done ? ended : done;
}

// What is captured has run once before, as pb_device promises; then memory is as it was.
Result<> Bench::replay(const std::function<void(const pb_ops&)>& f) {
    void* const self = component_.self();
    f(ops());
    PB_CHECK(arrays_.restore());
    PB_CHECK(component_.check(graph_calls().graph_begin(self), "graph_begin"));
    f(ops());
    pb_graph* graph = nullptr;
    PB_CHECK(component_.check(graph_calls().graph_end(self, &graph), "graph_end"));
    if (!graph) return fail("graph_end gave no graph");
    graphs_.push_back(graph);
    if (graph_calls().graph_bytes(self, graph) == 0) return fail("a graph takes no bytes");
    return component_.check(graph_calls().graph_launch(self, graph), "graph_launch");
}

Result<> Bench::launch_again() {
    PB_CHECK(component_.check(table().begin_step(component_.self()), "begin_step"));
    const Result<> launched =
        component_.check(graph_calls().graph_launch(component_.self(), graphs_.back()), "graph_launch");
    const Result<> ended = component_.check(table().end_step(component_.self()), "end_step");
    return launched ? ended : launched;
}

Result<Floats> Bench::finish(const pb_tensor& out, const std::function<void(const pb_ops&)>& f) {
    PB_CHECK(step(f));
    PB_CHECK(arrays_.check_padding(out));
    return arrays_.get(out);
}

Floats slice(const Floats& all, int64_t from, int64_t to, int64_t width) {
    return {all.begin() + from * width, all.begin() + to * width};
}

bool same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void round_to_bf16(Floats& values) {
    for (float& v : values) v = bf16_to_f32(f32_to_bf16(v));
}

}  // namespace patchbay::conformance
