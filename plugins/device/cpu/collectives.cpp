// The ops between ranks: in the table only if ranks are connected.
#include "ops.hpp"
#include "patchbay/sdk/checked_ops.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

float* values(const pb_tensor& t) { return static_cast<float*>(t.data); }
double bytes(const pb_tensor& t) { return static_cast<double>(elements(t)) * sizeof(float); }

struct Collectives {
    static void all_reduce(OpContext& ctx, const pb_tensor* x) {
        const int64_t count = elements(*x);
        if (count == 0) return;
        ctx.connection().communicate(bytes(*x), [&](Communicator& c) { c.all_reduce(values(*x), count); });
    }
    static void all_gather(OpContext& ctx, const pb_tensor* out, const pb_tensor* x) {
        if (elements(*x) == 0) return;
        ctx.connection().communicate(bytes(*x), [&](Communicator& c) {
            c.all_gather(values(*out), values(*x), x->shape[0], x->shape[1]);
        });
    }
};

}  // namespace

void add_collectives(pb_ops& ops) { set_checked_ops<OpContext, Collectives>(ops); }

}  // namespace patchbay
