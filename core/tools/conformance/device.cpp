// The device's checks: its memory, each op against its definition, and that a row's bits do not depend on the others.
#include <cmath>
#include <cstring>
#include <string_view>

#include "conformance/device_case.hpp"
#include "host/op_names.hpp"

namespace patchbay::conformance {
namespace {

Outcome info(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const Bench b, Bench::create(*component));
    const pb_device_info& i = b.info();
    if (!std::memchr(i.name, 0, sizeof i.name) || !i.name[0]) return fail("its name is empty or not terminated");
    if (!std::memchr(i.isa, 0, sizeof i.isa)) return fail("its isa is not terminated");
    if (!std::memchr(i.compatible_with, 0, sizeof i.compatible_with))
        return fail("its compatible_with is not terminated");
    if (!std::memchr(i.visible_by, 0, sizeof i.visible_by)) return fail("its visible_by is not terminated");
    if (i.activation_dtype != PB_F32 && i.activation_dtype != PB_BF16 && i.activation_dtype != PB_F16)
        return fail("its activation_dtype is " + std::to_string(i.activation_dtype) + ", expected f32, bf16 or f16");
    if (i.memory_total == 0 || i.memory_free > i.memory_total)
        return fail("it has " + std::to_string(i.memory_free) + " bytes free of " + std::to_string(i.memory_total));
    const pb_ops* o = subject.table<pb_device>().ops(component->self());
    if (!o || o->struct_size < sizeof(uint32_t)) return fail("its ops table is missing or too small");
    const pb_ops ops = widened<pb_ops>(o, o->struct_size);
    if (!ops.embedding || !ops.linear || !ops.rms_norm || !ops.rope || !ops.silu_mul || !ops.add || !ops.gather_rows)
        return fail("its ops table lacks an op that is not optional");
    if (component->extension<pb_device_graphs>() && i.host_memory) return fail("it has graphs over the host's memory");
    return {};
}

// Skips what looks at numbers on devices that have none, or in a dtype that these checks do not speak.
Result<std::string> why_no_numbers(const host::Component& component) {
    PB_TRY(const Bench b, Bench::create(component));
    if (!b.info().computes) return std::string("it computes nothing");
    if (b.info().activation_dtype == PB_F16) return std::string("its activations are f16");
    return std::string();
}

Outcome memory(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const std::string skip, why_no_numbers(*component));
    if (!skip.empty()) return Outcome::skip(skip);
    const pb_device& table = subject.table<pb_device>();
    void* self = component->self();
    constexpr uint64_t kBytes = 8192, kPage = 2048;
    void* block = nullptr;
    PB_CHECK(component->check(table.alloc(self, kBytes, &block), "alloc"));
    const auto judge = [&]() -> Outcome {
        if (!block || reinterpret_cast<uintptr_t>(block) % 64 != 0) return fail("alloc is not aligned to 64 bytes");
        std::vector<uint8_t> there(kBytes), back(kBytes, 9);
        PB_CHECK(component->check(table.to_host(self, back.data(), block, kBytes), "to_host"));
        if (back != there) return fail("alloc is not zeroed");
        for (size_t i = 0; i < there.size(); ++i) there[i] = static_cast<uint8_t>(i * 31 + i / 256);
        PB_CHECK(component->check(table.to_device(self, block, there.data(), kBytes), "to_device"));
        PB_CHECK(component->check(table.to_host(self, back.data(), block, kBytes), "to_host"));
        if (back != there) return fail("bytes copied to it and back are not the same");
        PB_CHECK(
            component->check(table.copy_page(self, static_cast<char*>(block) + 3 * kPage, block, kPage), "copy_page"));
        PB_CHECK(component->check(table.to_host(self, back.data(), block, kBytes), "to_host"));
        std::memcpy(there.data() + 3 * kPage, there.data(), kPage);
        return back == there ? Outcome() : fail("copy_page copied other bytes than those given");
    };
    const Outcome outcome = judge();
    table.free(self, block);
    return outcome;
}

Outcome weights(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const std::string skip, why_no_numbers(*component));
    if (!skip.empty()) return Outcome::skip(skip);
    const pb_device& table = subject.table<pb_device>();
    const Floats data(64, 1);
    struct Case {
        const char* what;
        pb_weight_source source;
    };
    const auto source_of = [&](pb_weight_role role, pb_dtype dtype, int64_t rows, int64_t cols) {
        return pb_weight_source{sizeof(pb_weight_source), role, dtype, 0, rows, cols, data.data(), nullptr, 0, nullptr};
    };
    const Case kCases[] = {
        {"of an unknown role", source_of(99, PB_F32, 8, 8)},
        {"without rows", source_of(PB_WEIGHT_LINEAR, PB_F32, 0, 8)},
        {"of -1 columns", source_of(PB_WEIGHT_LINEAR, PB_F32, 8, -1)},
        {"of dtype i64", source_of(PB_WEIGHT_LINEAR, PB_I64, 8, 8)},
        {"of codes without scales", source_of(PB_WEIGHT_LINEAR, PB_I8, 8, 8)},
    };
    for (const Case& c : kCases) {
        pb_weight* w = nullptr;
        const pb_status status = table.prepare(component->self(), &c.source, &w);
        if (status == PB_OK) return fail(std::string("it prepares a weight ") + c.what);
    }
    PB_TRY(Bench b, Bench::create(*component));
    PB_TRY(const pb_weight* w, b.weights().make(PB_WEIGHT_LINEAR, 8, 8, data));
    if (table.weight_bytes(component->self(), w) == 0) return fail("a weight of 8 by 8 takes no bytes");
    return {};
}

std::string differs(const OpCase& c, const Floats& got, const std::vector<double>& expected, double tolerance) {
    if (got.size() != expected.size())
        return std::to_string(got.size()) + " values, expected " + std::to_string(expected.size());
    for (size_t i = 0; i < got.size(); ++i)
        if (!(std::abs(got[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i]))))
            return c.name() + ": value " + std::to_string(i) + " is " + std::to_string(got[i]) +
                   ", expected " + std::to_string(expected[i]);
    return "";
}

Outcome codes(Subject& subject, pb_dtype dtype) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const std::string skip, why_no_numbers(*component));
    return skip.empty() ? quantised(subject, dtype) : Outcome::skip(skip);
}

bool has(const host::Component& component, std::string_view op) {
    return host::has_op(ops_of(component), op);
}

// Each case of an op in double, on two threads.
Outcome exact(Subject& subject, std::string_view op) {
    PB_TRY(auto component, subject.make(2));
    PB_TRY(const std::string skip, why_no_numbers(*component));
    if (!skip.empty()) return Outcome::skip(skip);
    if (!has(*component, op)) return Outcome::skip("it leaves the op out");
    for (const OpCase& c : op_cases()) {
        if (op != c.op) continue;
        PB_TRY(Bench b, Bench::create(*component));
        PB_TRY(const Floats got, c.run(b, 0, c.rows));
        if (const std::string wrong = differs(c, got, c.expected(b), b.tolerance()); !wrong.empty()) return fail(wrong);
    }
    return {};
}

// Compares every case's rows on a plain bench with f(component, case, those rows).
template <class F>
Outcome for_each_op(Subject& subject, F&& f) {
    PB_TRY(auto component, subject.make(2));
    PB_TRY(const std::string skip, why_no_numbers(*component));
    if (!skip.empty()) return Outcome::skip(skip);
    for (const OpCase& c : op_cases()) {
        if (!has(*component, c.op)) continue;
        PB_TRY(Bench b, Bench::create(*component));
        PB_TRY(const Floats all, c.run(b, 0, c.rows));
        if (Outcome o = f(*component, c, all); o.what != Outcome::What::kOk) return o;
    }
    return {};
}

Outcome batch(Subject& subject) {
    {
        PB_TRY(auto component, subject.make());
        PB_TRY(const Bench b, Bench::create(*component));
        if (b.info().batch_dependent) return Outcome::skip("it says that rows depend on how many there are");
    }
    return for_each_op(subject, [&](const host::Component&, const OpCase& c, const Floats& all) -> Outcome {
        PB_TRY(auto with_one_thread, subject.make(1));
        const auto width = static_cast<int64_t>(all.size()) / c.rows;
        for (int64_t r = 0; r < c.rows; ++r) {
            PB_TRY(Bench b, Bench::create(*with_one_thread));
            PB_TRY(const Floats alone, c.run(b, r, r + 1));
            if (!same_bits(alone, slice(all, r, r + 1, width)))
                return fail(c.name() + ": row " + std::to_string(r) +
                            " has other bits alone on one thread than among " + std::to_string(c.rows) + " on two");
        }
        return {};
    });
}

Outcome strides(Subject& subject) {
    return for_each_op(subject, [](const host::Component& component, const OpCase& c, const Floats& all) -> Outcome {
        PB_TRY(Bench b, Bench::create(component, Rows::kStrided));
        PB_TRY(const Floats strided, c.run(b, 0, c.rows));
        if (b.info().batch_dependent) { // what may depend on the number of rows may depend on where they lie
            const std::string wrong = differs(c, strided, {all.begin(), all.end()}, b.tolerance());
            return wrong.empty() ? Outcome() : fail("rows with a stride: " + wrong);
        }
        if (!same_bits(strided, all))
            return fail(c.name() + ": rows with a stride give other bits");
        return {};
    });
}

Outcome lifetimes(Subject& subject) {
    return for_each_op(subject, [](const host::Component& component, const OpCase& c, const Floats& all) -> Outcome {
        PB_TRY(Bench b, Bench::create(component, Rows::kDense, Steps::kLent));
        PB_TRY(const Floats again, c.run_all(b));
        if (!same_bits(again, all))
            return fail(c.name() +
                        ": it gives other numbers where arguments are overwritten when their call returns: it keeps a "
                        "pointer");
        return {};
    });
}

// Where nothing is computed: time passes for each op, the same for the same, and shapes are checked all the same.
Outcome charges(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto* const simulation = component->extension<pb_device_simulation>();
    void* const self = component->self();
    {
        PB_TRY(const Bench b, Bench::create(*component));
        if (b.info().computes && simulation) return fail("it computes, and yet charges time");
        if (b.info().computes) return Outcome::skip("it computes");
    }
    if (!simulation) return fail("it computes nothing, and does not say what time passes");
    for (const OpCase& c : op_cases()) {
        if (!has(*component, c.op)) continue;
        uint64_t charged[2] = {};
        for (uint64_t& ns : charged) {
            PB_TRY(Bench b, Bench::create(*component));
            PB_CHECK(c.run_all(b));
            ns = simulation->charged_ns(self);
        }
        if (charged[0] == 0) return fail(c.name() + ": no time is charged for it");
        if (charged[0] != charged[1])
            return fail(c.name() + ": it is charged " + std::to_string(charged[0]) +
                        " ns, and then " + std::to_string(charged[1]));
    }
    PB_TRY(Bench b, Bench::create(*component));
    PB_TRY(const pb_weight* w, b.weights().make(PB_WEIGHT_LINEAR, 8, 16, Floats(128, 1), {}, 0, PB_BF16));
    PB_TRY(const pb_tensor x, b.arrays().put(Floats(30, 1), {2, 15}));
    PB_TRY(const pb_tensor out, b.arrays().poison({2, 8}));
    if (b.step([&](const pb_ops& ops) { ops.linear(ops.ctx, &out, &x, w); }))
        return fail("linear takes 15 columns where the weight has 16");
    const pb_cost cost{sizeof(pb_cost), 1, 1u << 30, 1u << 30, 1u << 30, b.info().activation_dtype, 0};
    PB_CHECK(b.step([&](const pb_ops&) { simulation->charge(self, &cost); }));
    return simulation->charged_ns(self) > 0 ? Outcome() : fail("charge() charges nothing");
}

constexpr Check kChecks[] = {
    {"device.info", "says what it is, and has every op that is not optional", info},
    {"device.memory", "gives zeroed, aligned memory, and copies bytes as they are", memory},
    {"device.weights", "refuses weights that make no sense, and says what the others take", weights},
    {"device.linear", "computes x wT + bias, of f32 and bf16 weights", [](Subject& s) { return exact(s, "linear"); }},
    {"device.quantised_i8", "computes with weights of 8-bit codes", [](Subject& s) { return codes(s, PB_I8); }},
    {"device.quantised_i4", "computes with weights of 4-bit codes", [](Subject& s) { return codes(s, PB_I4); }},
    {"device.quantised_fp8", "computes with weights of fp8", [](Subject& s) { return codes(s, PB_FP8); }},
    {"device.embedding", "gathers rows of a table", [](Subject& s) { return exact(s, "embedding"); }},
    {"device.rms_norm", "norms by the root of the mean square", [](Subject& s) { return exact(s, "rms_norm"); }},
    {"device.add_rms_norm", "adds to the residual, then norms it", [](Subject& s) { return exact(s, "add_rms_norm"); }},
    {"device.rope", "rotates the pairs (i, i + half) by position", [](Subject& s) { return exact(s, "rope"); }},
    {"device.silu_mul", "gates by SiLU", [](Subject& s) { return exact(s, "silu_mul"); }},
    {"device.add", "adds in place", [](Subject& s) { return exact(s, "add"); }},
    {"device.gather_rows", "gathers rows of activations", [](Subject& s) { return exact(s, "gather_rows"); }},
    {"device.layer_norm", "norms by mean and variance", [](Subject& s) { return exact(s, "layer_norm"); }},
    {"device.relu", "cuts off below 0", [](Subject& s) { return exact(s, "relu"); }},
    {"device.gelu_tanh", "computes GELU by its tanh form", [](Subject& s) { return exact(s, "gelu_tanh"); }},
    {"device.gelu_tanh_mul", "gates by GELU", [](Subject& s) { return exact(s, "gelu_tanh_mul"); }},
    {"device.silu", "computes SiLU", [](Subject& s) { return exact(s, "silu"); }},
    {"device.gelu_erf", "computes GELU by its definition", [](Subject& s) { return exact(s, "gelu_erf"); }},
    {"device.gelu_erf_mul", "gates by GELU's definition", [](Subject& s) { return exact(s, "gelu_erf_mul"); }},
    {"device.sigmoid_mul", "multiplies by the sigmoid of a gate, one for a row or for each element",
     [](Subject& s) { return exact(s, "sigmoid_mul"); }},
    {"device.swiglu_oai", "gates by SwiGLU with clamped halves", [](Subject& s) { return exact(s, "swiglu_oai"); }},
    {"device.scale", "multiplies in place", [](Subject& s) { return exact(s, "scale"); }},
    {"device.soft_cap", "bends values below a cap", [](Subject& s) { return exact(s, "soft_cap"); }},
    {"device.top_k", "finds the greatest and their shares of the softmax",
     [](Subject& s) { return exact(s, "top_k"); }},
    {"device.expert_linear", "multiplies each row by its expert", [](Subject& s) { return exact(s, "expert_linear"); }},
    {"device.weighted_sum", "adds rows by weight", [](Subject& s) { return exact(s, "weighted_sum"); }},
    {"device.gated_mlp", "multiplies, gates and multiplies", [](Subject& s) { return exact(s, "gated_mlp"); }},
    {"device.causal_conv_silu", "convolves over time from where the rows before ended",
     [](Subject& s) { return exact(s, "causal_conv_silu"); }},
    {"device.ssm_scan", "scans from the state that the rows before left",
     [](Subject& s) { return exact(s, "ssm_scan"); }},
    {"device.fill_placeholders", "puts tokens in place that it has sampled", fill_placeholders},
    {"device.batch", "gives a row the same bits alone and in a batch, on one thread and two", batch},
    {"device.lifetimes", "keeps no pointer past the call that it came with", lifetimes},
    {"device.strides", "takes rows with a stride, and writes nothing between them", strides},
    {"device.ranks", "adds up and gathers over ranks, the same bits on each, and waits for none that is gone", ranks},
    {"device.graphs", "replays what it captured, over what memory holds then", graphs},
    {"device.steps", "runs steps in flight one after the other, and gives back what each of them asks to be", steps},
    {"device.host_pages", "copies pages to host memory and back in order with what it computes", host_pages},
    {"device.charges", "takes time for each op where it computes nothing, and none where it computes", charges},
};

}  // namespace

const Suite kDevice{kChecks, nullptr};

}  // namespace patchbay::conformance
