// The ops between ranks: in the table only where ranks are connected.
#include "checks.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

void expect_contiguous(const char* name, const pb_tensor& t) { // of rank 2
    if (t.shape[0] > 1 && t.strides[0] != t.shape[1]) throw Mismatch{std::string(name) + " is not contiguous"};
}

float* values(const pb_tensor& t) { return static_cast<float*>(t.data); }

void all_reduce(void* ctx, const pb_tensor* x) {
    run(ctx, "all_reduce", [&](const kernels::Machine&) {
        expect_f32("x", *x, 2, 2);
        expect_contiguous("x", *x);
        const int64_t count = elements(*x);
        if (count == 0) return;
        static_cast<CpuDevice*>(ctx)->communicate(
            static_cast<double>(count) * sizeof(float), [&](Communicator& c) { c.all_reduce(values(*x), count); });
    });
}

void all_gather(void* ctx, const pb_tensor* out, const pb_tensor* x) {
    run(ctx, "all_gather", [&](const kernels::Machine&) {
        expect_f32("x", *x, 2, 2);
        expect_contiguous("x", *x);
        if (elements(*x) == 0) return;
        static_cast<CpuDevice*>(ctx)->communicate(
            static_cast<double>(elements(*x)) * sizeof(float), [&](Communicator& c) {
                expect("out", *out, PB_F32, {x->shape[0], x->shape[1] * int64_t{c.size()}});
                expect_contiguous("out", *out);
                c.all_gather(values(*out), values(*x), x->shape[0], x->shape[1]);
            });
    });
}

}  // namespace

void add_collectives(pb_ops& ops) {
    ops.all_reduce = all_reduce;
    ops.all_gather = all_gather;
}

}  // namespace patchbay
