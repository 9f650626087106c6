// Pages, a batch, and one bound attention over them, for the attention's checks, in the memory of the device that it
// names where there is one.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/device_buffer.hpp"

namespace patchbay::conformance {

struct Shape {
    uint32_t heads = 4, kv_heads = 2, head_dim = 64, block_size = 16, window = 0;
    pb_dtype kv_dtype = PB_F32;
    const host::Component* device = nullptr; // null: "cpu", whose memory is the host's
    std::vector<float> slopes, sinks; // of the heads; empty: none
    float scale = 0, soft_cap = 0;    // 0: 1/√head_dim; none
    pb_attention_spec spec() const; // as long as this
};

struct Tokens { // a sequence with q (length, heads, dim), k and v (length, kv_heads, dim) of all its tokens
    std::vector<float> q, k, v;
    uint32_t length = 0;
};
Tokens random_tokens(uint64_t seed, const Shape&, uint32_t length);
// out (heads · dim) of one token, in double
std::vector<double> attend(const Shape&, const Tokens&, uint32_t token);

struct Part { // tokens [from, to) of a sequence are computed in this step
    const Tokens* tokens;
    uint32_t sequence, from, to;
};

// Host memory after bytes that may be neither read nor written, for arrays in which an index of −1 means "none".
class FencedMemory {
  public:
    FencedMemory() = default;
    static Result<FencedMemory> create(size_t bytes, size_t fence); // at least so many before; filled with 0xff
    std::byte* data() const { return data_; } // as mmap aligns it
    size_t size() const { return size_; }

  private:
    std::shared_ptr<void> mapping_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

class Pages {
  public:
    // pages: how many; all bytes are NaN patterns until something is appended.
    static Result<Pages> create(const host::Component&, const Shape&, uint32_t pages);

    // One step. Returns out (tokens of all parts, heads · dim), which was NaN before.
    Result<std::vector<float>> step(const std::vector<Part>&);
    enum class Write { kYes, kNo /* slot −1 everywhere */ };
    Result<std::vector<float>> step(const std::vector<Part>&, Write);
    Result<std::vector<uint8_t>> page(uint32_t index) const;
    uint32_t page_of(uint32_t sequence, uint32_t block); // given out when first asked for
    void free_before(uint32_t sequence, uint32_t block); // their ids are −1 from now on

  private:
    Pages(const host::Component& c, const Shape& shape) : component_(&c), shape_(shape) {}
    struct Step { // in host memory
        pb_attention_batch batch;
        std::vector<float>*q, *k, *v, *out;
    };
    pb_kv_view view(void* memory, const float* sinks) const;
    Result<> call(const pb_attention_batch*, const pb_kv_view*, void* plan, void* q, void* k, void* v, void* out);
    Result<> compute(const Step&);
    Result<> compute_there(const Step&);
    const pb_attention& table() const { return *static_cast<const pb_attention*>(component_->type().vtable); }

    const host::Component* component_;
    Shape shape_;
    pb_attention_layout layout_ = sized<pb_attention_layout>();
    std::shared_ptr<void> bound_; // unbound at the end
    FencedMemory memory_; // pages · page_bytes, after one that is not there: −1 is no page
    std::vector<uint64_t> plan_;
    std::unique_ptr<DeviceBuffer> memory_there_, plan_there_, sinks_there_; // of a device with memory of its own
    std::vector<std::vector<int32_t>> blocks_; // of each sequence
    uint32_t taken_ = 0, pages_ = 0;
};

}  // namespace patchbay::conformance
