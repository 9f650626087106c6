// The ops of recurrent layers, which carry states from step to step. Values of ids are checked here.
#include "ids.hpp"
#include "ops.hpp"
#include "patchbay/sdk/checked_ops.hpp"
#include "weights.hpp"

namespace patchbay {
namespace {

// The states of a batch of this many rows.
kernels::States states_of(const pb_state& state, uint64_t offset, int64_t rows) {
    const int32_t* const starts = checked_ids("query_starts", state.query_starts, rows + 1);
    const auto* const pages = static_cast<const int32_t*>(state.pages.data);
    const int64_t count = state.pages.shape[0];
    for (int64_t s = 0; s < count; ++s) {
        if (starts[s] > starts[s + 1])
            throw Mismatch{"query_starts goes from " + std::to_string(starts[s]) + " back to " +
                           std::to_string(starts[s + 1])};
        if (pages[s] >= static_cast<int64_t>(state.page_count))
            throw Mismatch{"page " + std::to_string(pages[s]) + " of " + std::to_string(state.page_count)};
    }
    return {static_cast<uint8_t*>(state.data),                  state.page_stride, offset, count, pages, starts,
            static_cast<const int32_t*>(state.is_first_chunk.data)};
}

struct RecurrentKernels {
    static void causal_conv_silu(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                                 const pb_weight* bias, uint32_t width, const pb_state* state, uint64_t offset) {
        const float* const added = bias ? bias->vector.data() : nullptr;
        kernels::causal_conv_silu(ctx.machine(), *out, *x, w->vector.data(), added, width,
                                  states_of(*state, offset, x->shape[0]));
    }
    static void ssm_scan(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt,
                         const pb_tensor* b, const pb_tensor* c, const pb_scan* weights, const pb_state* state,
                         uint64_t offset) {
        const kernels::Scan scan{weights->a_log->vector.data(), weights->dt_bias->vector.data(),
                                 weights->skip->vector.data(), weights->dt_min, weights->dt_max};
        kernels::ssm_scan(ctx.machine(), *out, *x, *dt, *b, *c, scan, states_of(*state, offset, x->shape[0]));
    }
};
static_assert(kernels::kMaxTaps == 16, "the widest convolution of pb_ops");

}  // namespace

void add_recurrent_ops(pb_ops& ops) { set_checked_ops<OpContext, RecurrentKernels>(ops); }

}  // namespace patchbay
