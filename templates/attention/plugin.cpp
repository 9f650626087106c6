// @name@ - attention over pages of KV on the CPU, a query at a time with a running softmax (Milakov and Gimelshein
// 2018).
#include <cmath>
#include <cstdio>

#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("heads_per_task", "1", 1, 4096, "heads", "that one task of the thread pool computes"),
    };
    using Bound = pb_attention_spec; // what the layers of one KV group need: bind() makes it, the calls after it get it
    static constexpr uint32_t kMaxHeadDim = 256;

    explicit @Class@(const patchbay::Context& context)
        : pool_(context.host()), heads_per_task_(context.get<uint32_t>("heads_per_task")) {}

    // How many bytes a page of one layer takes, or why it does not serve such layers.
    pb_attention_layout describe(const pb_attention_spec& s) const {
        const auto refuse = [](const std::string& why) { throw patchbay::Error(PB_UNSUPPORTED, why); };
        if (std::string_view(s.device ? s.device : "") != "cpu") refuse("the device is not 'cpu'");
        if (s.activation_dtype != PB_F32) refuse("activations are not f32");
        if (s.kv_dtype != PB_F32 && s.kv_dtype != PB_BF16) refuse("kv dtype is neither f32 nor bf16");
        if (s.head_dim < 1 || s.head_dim > kMaxHeadDim) refuse("head_dim is not in 1 to 256");
        patchbay::check_heads_and_pages(s);
        auto out = patchbay::sized<pb_attention_layout>();
        out.page_bytes = uint64_t{2} * s.block_size * s.kv_heads * s.head_dim * bytes_of(s);
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "@name@/%s/%ux%ux%u", patchbay::dtype_name(s.kv_dtype),
                      s.block_size, s.kv_heads, s.head_dim);
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& s) const { return std::make_unique<Bound>(s); }
    void plan(Bound&, const pb_attention_batch&, void*) const {} // once a step: this one has nothing to prepare

    // A page: keys (block_size, kv_heads, head_dim), then values likewise. k, v: (T, kv_heads, head_dim) f32.
    void append_kv(Bound& s, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        for (uint32_t t = 0; t < batch.token_count; ++t) {
            const int64_t slot = batch.slot_mapping[t]; // page · block_size + offset in it
            if (slot < 0) continue;
            for (uint32_t h = 0; h < s.kv_heads; ++h)
                for (uint32_t i = 0; i < s.head_dim; ++i) {
                    write(s, address(s, kv, 0, slot, h), i, row(k, t, h)[i]);
                    write(s, address(s, kv, 1, slot, h), i, row(v, t, h)[i]);
                }
        }
    }

    // out (T, heads, head_dim) from q (T, heads, head_dim), both f32.
    void run(Bound& s, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const uint32_t tasks = (s.heads + heads_per_task_ - 1) / heads_per_task_; // of a sequence
        pool_.run(batch.seq_count * tasks, [&](uint32_t task) {
            const uint32_t seq = task / tasks, first = task % tasks * heads_per_task_;
            for (int32_t t = batch.query_starts[seq]; t < batch.query_starts[seq + 1]; ++t)
                for (uint32_t h = first; h < std::min(s.heads, first + heads_per_task_); ++h)
                    attend(s, kv, batch.blocks + batch.block_starts[seq], batch.positions[t], h,
                           row(q, t, h), row(out, t, h));
        });
    }

  private:
    // One query (head_dim) of query head h at `position` over the keys that it sees.
    static void attend(const Bound& s, const pb_kv_view& kv, const int32_t* table,
                       int64_t position, uint32_t h, const float* q, float* out) {
        const int64_t window = s.sliding_window ? s.sliding_window : position + 1;
        double greatest = -INFINITY, total = 0, sum[kMaxHeadDim] = {};
        for (int64_t key = std::max<int64_t>(0, position + 1 - window); key <= position; ++key) {
            const int64_t slot = int64_t{table[key / s.block_size]} * s.block_size + key % s.block_size;
            const uint32_t kv_head = h / (s.heads / s.kv_heads);
            double score = 0;
            for (uint32_t i = 0; i < s.head_dim; ++i) score += q[i] * read(s, address(s, kv, 0, slot, kv_head), i);
            score *= s.scale;
            if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
            const double before = greatest;
            greatest = std::max(greatest, score);
            const double kept = std::exp(before - greatest), weight = std::exp(score - greatest);
            total = total * kept + weight;
            for (uint32_t i = 0; i < s.head_dim; ++i)
                sum[i] = sum[i] * kept + weight * read(s, address(s, kv, 1, slot, kv_head), i);
        }
        for (uint32_t i = 0; i < s.head_dim; ++i) out[i] = static_cast<float>(sum[i] / total);
    }

    static uint32_t bytes_of(const Bound& s) { return s.kv_dtype == PB_F32 ? 4 : 2; }
    static float* row(const pb_tensor& x, int64_t token, int64_t head) {
        return static_cast<float*>(x.data) + token * x.strides[0] + head * x.strides[1];
    }
    // half 0: keys, 1: values
    static uint8_t* address(const Bound& s, const pb_kv_view& kv, uint32_t half, int64_t slot, uint32_t head) {
        const uint64_t page = static_cast<uint64_t>(slot) / s.block_size;
        const uint64_t offset = static_cast<uint64_t>(slot) % s.block_size;
        return kv.data + page * kv.page_stride +
               ((half * s.block_size + offset) * s.kv_heads + head) * s.head_dim * bytes_of(s);
    }
    static void write(const Bound& s, uint8_t* at, uint32_t i, float value) {
        if (s.kv_dtype == PB_F32) reinterpret_cast<float*>(at)[i] = value;
        else reinterpret_cast<uint16_t*>(at)[i] = patchbay::f32_to_bf16(value);
    }
    static float read(const Bound& s, const uint8_t* at, uint32_t i) {
        return s.kv_dtype == PB_F32 ? reinterpret_cast<const float*>(at)[i]
                                    : patchbay::bf16_to_f32(reinterpret_cast<const uint16_t*>(at)[i]);
    }

    patchbay::Pool pool_;
    uint32_t heads_per_task_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::attention<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "a query at a time, with a running softmax"}))
