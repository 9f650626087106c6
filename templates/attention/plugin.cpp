// @name@ - attention over pages of KV on the CPU, a query at a time with a running softmax (Milakov and Gimelshein
// 2018).
#include <cmath>

#include "patchbay/sdk/kv_rows.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("heads_per_task", "1", 1, 4096, "heads", "that one task of the thread pool computes"),
    };
    struct Bound { // the layers of one KV group: bind() makes it, the calls after it get it
        pb_attention_spec spec;
        patchbay::KvRows pages; // what lies where in a page: keys (block_size, kv_heads, head_dim), then values
    };
    using Part = patchbay::KvRows::Part;
    static constexpr uint32_t kMaxHeadDim = 256;

    explicit @Class@(const patchbay::Context& context)
        : pool_(context.host()), heads_per_task_(context.get<uint32_t>("heads_per_task")) {}

    // How many bytes a page of one layer takes, or why it does not serve such layers.
    pb_attention_layout describe(const pb_attention_spec& s) const {
        const auto refuse = [](const char* why) { throw patchbay::Error(PB_UNSUPPORTED, why); };
        if (std::string_view(s.device ? s.device : "") != "cpu") refuse("the device is not 'cpu'");
        if (s.activation_dtype != PB_F32) refuse("activations are not f32");
        if (s.head_dim < 1 || s.head_dim > kMaxHeadDim) refuse("head_dim is not in 1 to 256");
        return patchbay::KvRows(s).layout("@name@");
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& s) const {
        return std::make_unique<Bound>(Bound{s, patchbay::KvRows(s)});
    }
    void plan(Bound&, const pb_attention_batch&, void*) const {} // once a step: this one has nothing to prepare

    // k, v (T, kv_heads, head_dim) f32 into the slots of the batch.
    void append_kv(Bound& b, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        for (uint32_t t = 0; t < batch.token_count; ++t)
            for (uint32_t h = 0; h < b.spec.kv_heads && batch.slot_mapping[t] >= 0; ++h) {
                b.pages.write(kv, Part::kKeys, batch.slot_mapping[t], h, patchbay::head_row(k, t, h));
                b.pages.write(kv, Part::kValues, batch.slot_mapping[t], h, patchbay::head_row(v, t, h));
            }
    }

    // out (T, heads, head_dim) from q (T, heads, head_dim), both f32.
    void run(Bound& b, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const uint32_t heads = b.spec.heads, tasks = (heads + heads_per_task_ - 1) / heads_per_task_; // of a sequence
        pool_.run(batch.seq_count * tasks, [&](uint32_t task) {
            const uint32_t seq = task / tasks, first = task % tasks * heads_per_task_;
            for (int32_t t = batch.query_starts[seq]; t < batch.query_starts[seq + 1]; ++t)
                for (uint32_t h = first; h < std::min(heads, first + heads_per_task_); ++h)
                    attend(b, kv, batch.blocks + batch.block_starts[seq], batch.positions[t], h,
                           patchbay::head_row(q, t, h), patchbay::head_row(out, t, h));
        });
    }

  private:
    // One query (head_dim) of query head h at `position` over the keys that it sees; table: the pages of its sequence.
    static void attend(const Bound& b, const pb_kv_view& kv, const int32_t* table, int64_t position, uint32_t h,
                       const float* q, float* out) {
        const pb_attention_spec& s = b.spec;
        const uint32_t kv_head = h / (s.heads / s.kv_heads);
        const int64_t window = s.sliding_window ? s.sliding_window : position + 1;
        double greatest = -INFINITY, total = 0, sum[kMaxHeadDim] = {};
        float row[kMaxHeadDim];
        for (int64_t at = std::max<int64_t>(0, position + 1 - window); at <= position; ++at) {
            const int64_t slot = int64_t{table[at / s.block_size]} * s.block_size + at % s.block_size;
            b.pages.read(kv, Part::kKeys, slot, kv_head, row);
            double score = 0;
            for (uint32_t i = 0; i < s.head_dim; ++i) score += q[i] * row[i];
            score *= s.scale;
            if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
            const double before = greatest;
            greatest = std::max(greatest, score);
            const double kept = std::exp(before - greatest), weight = std::exp(score - greatest);
            total = total * kept + weight;
            b.pages.read(kv, Part::kValues, slot, kv_head, row);
            for (uint32_t i = 0; i < s.head_dim; ++i) sum[i] = sum[i] * kept + weight * row[i];
        }
        for (uint32_t i = 0; i < s.head_dim; ++i) out[i] = static_cast<float>(sum[i] / total);
    }

    patchbay::Pool pool_;
    uint32_t heads_per_task_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::attention<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "a query at a time, with a running softmax"}))
