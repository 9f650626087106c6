// patchbay/testing/attention.hpp - an attention backend over pages in host memory, and one sequence that grows in them.
#pragma once
#include <cstdlib>
#include <memory>
#include <vector>

#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

// 2 heads over 1 head of keys and values, of 8 elements, pages of 4 tokens, all in f32 on the device "cpu".
inline pb_attention_spec small_attention() {
    auto s = sized<pb_attention_spec>();
    s.heads = 2;
    s.kv_heads = 1;
    s.head_dim = 8;
    s.block_size = 4;
    s.activation_dtype = s.kv_dtype = PB_F32;
    s.scale = 1;
    s.device = "cpu";
    return s;
}

class Attention : public Subject {
  public:
    // Throws Error where describe() or bind() refuses the layers. The sequence has at most max_tokens tokens.
    explicit Attention(const Plugin& plugin, const pb_attention_spec& spec = small_attention(),
                       const Settings& settings = {}, uint32_t max_tokens = 256, std::string_view name = {})
        : Subject(plugin, PB_ATTENTION, settings, name), spec_(spec) {
        component.check(table().describe(component.self(), &spec_, &layout));
        component.check(table().bind(component.self(), &spec_, &bound_));
        const uint32_t pages = (max_tokens + spec_.block_size - 1) / spec_.block_size;
        for (uint32_t p = pages; p-- > 0;) blocks_.push_back(static_cast<int32_t>(p)); // in no order of memory
        const uint64_t bytes = (pages * layout.page_bytes + 63) / 64 * 64;
        const uint64_t plan = (layout.plan_bytes + 64) / 64 * 64;
        memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, bytes)));
        plan_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, plan)));
        std::fill_n(memory_.get(), bytes, uint8_t{0});
    }
    ~Attention() {
        if (bound_) table().unbind(component.self(), bound_);
    }

    pb_attention_layout layout = sized<pb_attention_layout>(); // what describe() said

    // The next tokens of the sequence: q (T, heads, head_dim), k and v (T, kv_heads, head_dim), one after the other.
    // Returns the output, shaped as q.
    std::vector<float> attend(std::vector<float> q, std::vector<float> k, std::vector<float> v) {
        const auto tokens = static_cast<int32_t>(q.size() / (spec_.heads * spec_.head_dim));
        const auto size = static_cast<int32_t>(spec_.block_size);
        std::vector<int64_t> slots;
        std::vector<int32_t> positions;
        for (int32_t t = 0; t < tokens; ++t, ++length_) {
            positions.push_back(length_);
            slots.push_back(int64_t{blocks_.at(static_cast<size_t>(length_ / size))} * size + length_ % size);
        }
        const int32_t used = (length_ + size - 1) / size; // pages
        const int32_t query_starts[] = {0, tokens}, block_starts[] = {0, used};
        auto batch = sized<pb_attention_batch>();
        batch.seq_count = 1;
        batch.token_count = batch.max_query_len = static_cast<uint32_t>(tokens);
        batch.query_starts = query_starts;
        batch.seq_lens = &length_;
        batch.block_starts = block_starts;
        batch.blocks = blocks_.data();
        batch.slot_mapping = slots.data();
        batch.positions = positions.data();
        batch.max_seq_len = static_cast<uint32_t>(length_);
        auto kv = sized<pb_kv_view>();
        kv.data = memory_.get();
        kv.page_stride = layout.page_bytes;
        kv.page_count = static_cast<uint32_t>(blocks_.size());
        std::vector<float> out(q.size());
        const auto view = [&](std::vector<float>& x, uint32_t heads) {
            return tensor(x.data(), PB_F32, {tokens, heads, spec_.head_dim});
        };
        const pb_tensor all[] = {view(q, spec_.heads), view(k, spec_.kv_heads), view(v, spec_.kv_heads),
                                 view(out, spec_.heads)};
        component.check(table().plan(component.self(), bound_, &batch, plan_.get()));
        table().append_kv(component.self(), bound_, &batch, &kv, &all[1], &all[2]);
        table().run(component.self(), bound_, &batch, &kv, &all[3], &all[0]);
        return out;
    }

  private:
    struct Free {
        void operator()(uint8_t* p) const { std::free(p); }
    };
    const pb_attention& table() const { return component.table<pb_attention>(); }

    pb_attention_spec spec_;
    std::vector<int32_t> blocks_;
    std::unique_ptr<uint8_t, Free> memory_, plan_;
    int32_t length_ = 0; // tokens with KV
    void* bound_ = nullptr;
};

}  // namespace patchbay::testing
