// The device's check of graphs: what was captured runs when it is launched, not before, over what memory holds then.
#include "conformance/device_case.hpp"
#include "host/op_names.hpp"

namespace patchbay::conformance {
namespace {

// Each op's results by a graph have the bits of those without one. An op in place that ran while it was recorded would
// show, since it would run twice; so would an argument that the graph keeps a pointer to.
Outcome each_op(const host::Component& component) {
    const pb_ops ops = ops_of(component);
    for (const OpCase& c : op_cases()) {
        if (!host::has_op(ops, c.op)) continue;
        PB_TRY(Bench plain, Bench::create(component));
        PB_TRY(const Floats run, c.run(plain, 0, c.rows));
        PB_TRY(Bench replaying, Bench::create(component, Rows::kDense, Steps::kReplay));
        PB_TRY(const Floats replayed, c.run_all(replaying));
        if (!same_bits(run, replayed)) return fail(c.name() + ": its replay gives other bits");
    }
    return {};
}

Outcome over_new_inputs(const host::Component& component) {
    const Floats first(24, 1), then(24, 2);
    const auto doubled = [&](Steps steps, const Floats& x) -> Result<Floats> { // x + x, over inputs `first` before it
        PB_TRY(Bench b, Bench::create(component, Rows::kDense, steps));
        PB_TRY(const pb_tensor sum, b.arrays().put(steps == Steps::kRun ? x : first, {3, 8}));
        PB_TRY(const pb_tensor other, b.arrays().put(steps == Steps::kRun ? x : first, {3, 8}));
        PB_CHECK(b.step([&](const pb_ops& ops) { ops.add(ops.ctx, &sum, &other); }));
        if (steps == Steps::kRun) return b.arrays().get(sum);
        PB_CHECK(b.arrays().write(sum, x));
        PB_CHECK(b.arrays().write(other, x));
        PB_CHECK(b.launch_again());
        return b.arrays().get(sum);
    };
    PB_TRY(const Floats run, doubled(Steps::kRun, then));
    PB_TRY(const Floats replayed, doubled(Steps::kReplay, then));
    if (same_bits(run, replayed)) return {};
    return fail("a second launch of a graph does not see the inputs of that time");
}

Outcome same_charge(const host::Component& component) {
    for (const OpCase& c : op_cases()) {
        if (!host::has_op(ops_of(component), c.op)) continue;
        PB_TRY(Bench b, Bench::create(component, Rows::kDense, Steps::kReplay));
        PB_CHECK(c.run_all(b));
        uint64_t charged[2] = {};
        for (uint64_t& ns : charged) {
            PB_CHECK(b.launch_again());
            ns = component.extension<pb_device_simulation>()->charged_ns(component.self());
        }
        if (charged[0] == 0 || charged[0] != charged[1])
            return fail(c.name() + ": its replay is charged " + std::to_string(charged[0]) +
                        " ns, and then " + std::to_string(charged[1]));
    }
    return {};
}

}  // namespace

Outcome graphs(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const Bench b, Bench::create(*component));
    if (!component->extension<pb_device_graphs>()) return Outcome::skip("it captures no graphs");
    if (!b.info().computes) return same_charge(*component);
    if (b.info().activation_dtype == PB_F16) return Outcome::skip("its activations are f16");
    if (Outcome o = each_op(*component); o.what != Outcome::What::kOk) return o;
    return over_new_inputs(*component);
}

}  // namespace patchbay::conformance
