// The ops of recurrent layers, which carry states from step to step.
#include "checks.hpp"

namespace patchbay {
namespace {

// The states of a batch of so many rows, of which the op has `floats` in each page.
kernels::States states_of(const pb_state& state, uint64_t offset, int64_t floats, int64_t rows) {
    const uint64_t end = offset + static_cast<uint64_t>(floats) * sizeof(float);
    if (!state.data || offset % sizeof(float) != 0 || end > state.page_stride)
        throw Mismatch{"the state needs " + std::to_string(floats) + " values at byte " + std::to_string(offset) +
                       ", pages have " + std::to_string(state.page_stride) + " bytes"};
    expect_rank("pages", state.pages, 1, 1);
    const int64_t count = state.pages.shape[0];
    expect("pages", state.pages, PB_I32, {count});
    expect("begins", state.begins, PB_I32, {count});
    const int32_t* const starts = indices("query_starts", state.query_starts, {count + 1}, rows + 1);
    const auto* const pages = static_cast<const int32_t*>(state.pages.data);
    for (int64_t s = 0; s < count; ++s) {
        if (starts[s] > starts[s + 1])
            throw Mismatch{"query_starts goes from " + std::to_string(starts[s]) + " back to " +
                           std::to_string(starts[s + 1])};
        if (pages[s] >= static_cast<int64_t>(state.page_count))
            throw Mismatch{"page " + std::to_string(pages[s]) + " of " + std::to_string(state.page_count)};
    }
    return {static_cast<uint8_t*>(state.data),                  state.page_stride, offset, count, pages, starts,
            static_cast<const int32_t*>(state.begins.data)};
}

void causal_conv_silu(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* bias,
                      uint32_t width, const pb_state* state, uint64_t offset) {
    run(ctx, "causal_conv_silu", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_like("out", *out, *x);
        if (width < 2 || width > kernels::kMostTaps)
            throw Mismatch{"width is " + std::to_string(width) + ", expected 2 to " +
                           std::to_string(kernels::kMostTaps)};
        const int64_t n = x->shape[1];
        const float* const added = bias ? vector_of(bias, "the convolution's bias", n) : nullptr;
        kernels::causal_conv_silu(machine, *out, *x, vector_of(w, "the convolution's weight", n * width), added, width,
                                  states_of(*state, offset, n * (width - 1), x->shape[0]));
    });
}

void ssm_scan(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt, const pb_tensor* b,
              const pb_tensor* c, const pb_scan* weights, const pb_state* state, uint64_t offset) {
    run(ctx, "ssm_scan", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 3, 3);
        expect_like("out", *out, *x);
        const int64_t rows = x->shape[0], heads = x->shape[1];
        expect("dt", *dt, PB_F32, {rows, heads});
        expect_f32("b", *b, 3, 3);
        expect("b", *b, PB_F32, {rows, b->shape[1], b->shape[2]});
        expect_like("c", *c, *b);
        if (b->shape[1] == 0 || heads % b->shape[1] != 0)
            throw Mismatch{std::to_string(heads) + " heads over " + std::to_string(b->shape[1]) + " groups"};
        const kernels::Scan scan{vector_of(weights->a_log, "a_log", heads),
                                 vector_of(weights->dt_bias, "dt_bias", heads),
                                 vector_of(weights->skip, "skip", heads), weights->dt_min, weights->dt_max};
        kernels::ssm_scan(machine, *out, *x, *dt, *b, *c, scan,
                          states_of(*state, offset, heads * x->shape[2] * b->shape[2], rows));
    });
}

}  // namespace

void add_recurrent_ops(pb_ops& ops) {
    ops.causal_conv_silu = causal_conv_silu;
    ops.ssm_scan = ssm_scan;
}

}  // namespace patchbay
