// @name@ - attention over pages of KV on the CPU, a query at a time with a running softmax (Milakov and Gimelshein
// 2018).
#include <cmath>

#include "patchbay/sdk/query_attention.hpp"

namespace {

// The base class says which layers it serves and how keys and values lie in a page (describe), stores those of new
// tokens (append_kv), and calls attend() for each query of each head (run), in tasks of the host's thread pool.
class @Class@ : public patchbay::QueryAttention<@Class@> {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("heads_per_task", "1", 1, 4096, "heads", "that one task of the thread pool computes"),
    };

    explicit @Class@(const patchbay::Context& context)
        : QueryAttention(context, "@name@", context.get<uint32_t>("heads_per_task")) {}

    // out (head_dim) f32: the values that the query sees, weighted by the softmax of its scores.
    void attend(const patchbay::Query& query, float* out) const noexcept {
        const uint32_t size = query.head_dim();
        double greatest = -INFINITY, total = 0, sum[patchbay::Query::kMaxHeadDim] = {};
        float value[patchbay::Query::kMaxHeadDim];
        for (int64_t at = query.first(); at <= query.position(); ++at) {
            const double score = query.score(at), before = greatest;
            greatest = std::max(greatest, score);
            const double kept = std::exp(before - greatest), weight = std::exp(score - greatest);
            total = total * kept + weight;
            query.value(at, value);
            for (uint32_t i = 0; i < size; ++i) sum[i] = sum[i] * kept + weight * value[i];
        }
        for (uint32_t i = 0; i < size; ++i) out[i] = static_cast<float>(sum[i] / total);
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::attention<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "a query at a time, with a running softmax"}))
