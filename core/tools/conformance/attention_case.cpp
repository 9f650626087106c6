#include "conformance/attention_case.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {

namespace {
constexpr uint32_t kMaxSequences = 16, kMaxTokens = 512; // of a batch
}

pb_attention_spec Shape::spec() const {
    return {sizeof(pb_attention_spec),
            heads,
            kv_heads,
            head_dim,
            block_size,
            window,
            PB_F32,
            kv_dtype,
            scale > 0 ? scale : 1 / std::sqrt(static_cast<float>(head_dim)),
            soft_cap,
            device ? device->type().name : "cpu",
            kMaxSequences,
            kMaxTokens,
            kMaxTokens,
            0,
            slopes.empty() ? nullptr : slopes.data(),
            !sinks.empty(),
            0};
}

Tokens random_tokens(uint64_t seed, const Shape& shape, uint32_t length) {
    Noise noise(seed);
    const size_t d = shape.head_dim;
    Tokens out{noise.reals(length * shape.heads * d, -2, 2), noise.reals(length * shape.kv_heads * d, -2, 2),
               noise.reals(length * shape.kv_heads * d, -2, 2), length};
    // A backend may round q to bf16 where keys are not f32.
    if (shape.kv_dtype != PB_F32)
        for (float& x : out.q) x = bf16_to_f32(f32_to_bf16(x));
    return out;
}

namespace {

// The nearest number that fp8 (e4m3) has.
double nearest_fp8(double x) {
    const double step = std::ldexp(1, std::max(x == 0 ? -6 : std::ilogb(x), -6) - 3);
    return std::clamp(std::nearbyint(x / step) * step, -448.0, 448.0);
}

// What a page keeps of one token and head, (d).
std::vector<double> kept(pb_dtype dtype, const float* x, uint32_t d) {
    std::vector<double> out(x, x + d);
    const auto larger = [](double a, double b) { return std::abs(a) < std::abs(b); };
    const double max_size = std::abs(*std::max_element(out.begin(), out.end(), larger));
    for (double& y : out) {
        if (dtype == PB_BF16) y = bf16_to_f32(f32_to_bf16(static_cast<float>(y)));
        if (dtype == PB_I8) y = std::nearbyint(y / max_size * 127) * max_size / 127;
        if (dtype == PB_FP8) y = nearest_fp8(y / max_size * 448) * max_size / 448;
    }
    return out;
}

}  // namespace

std::vector<double> attend(const Shape& shape, const Tokens& t, uint32_t token) {
    const uint32_t d = shape.head_dim,
                   first = shape.window > 0 && token + 1 > shape.window ? token + 1 - shape.window : 0;
    std::vector<double> out(shape.heads * d);
    for (uint32_t h = 0; h < shape.heads; ++h) {
        const uint32_t g = h / (shape.heads / shape.kv_heads);
        const auto row = [&](const std::vector<float>& of, uint32_t j) {
            return kept(shape.kv_dtype, of.data() + (j * shape.kv_heads + g) * d, d);
        };
        std::vector<double> scores;
        for (uint32_t j = first; j <= token; ++j) {
            double dot = 0;
            const std::vector<double> k = row(t.k, j);
            for (uint32_t i = 0; i < d; ++i) dot += double{t.q[(token * shape.heads + h) * d + i]} * k[i];
            const double slope = shape.slopes.empty() ? 0 : shape.slopes[h], cap = shape.soft_cap;
            const double score = dot * shape.spec().scale, capped = cap > 0 ? cap * std::tanh(score / cap) : score;
            scores.push_back(capped + slope * (static_cast<double>(j) - token));
        }
        if (!shape.sinks.empty()) scores.push_back(shape.sinks[h]); // of a key without a value
        const double max_score = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (double& s : scores) sum += s = std::exp(s - max_score);
        for (uint32_t j = first; j <= token; ++j) {
            const std::vector<double> v = row(t.v, j);
            for (uint32_t i = 0; i < d; ++i) out[h * d + i] += scores[j - first] / sum * v[i];
        }
    }
    return out;
}

Result<FencedMemory> FencedMemory::create(size_t bytes, size_t fence) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t before = (fence + page - 1) / page * page, all = before + bytes;
    void* const mapping = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return fail(StatusCode::kExhausted, "no memory for " + std::to_string(all) + " bytes");
    FencedMemory out;
    out.mapping_ = {mapping, [all](void* p) { munmap(p, all); }};
    out.data_ = static_cast<std::byte*>(mapping) + before;
    out.size_ = bytes;
    if (mprotect(out.data_, bytes, PROT_READ | PROT_WRITE) != 0)
        return fail(StatusCode::kExhausted, "no memory for " + std::to_string(bytes) + " bytes");
    std::memset(out.data_, 0xff, bytes);
    return out;
}

Result<Pages> Pages::create(const host::Component& c, const Shape& shape, uint32_t pages) {
    Pages out(c, shape);
    const pb_attention_spec spec = shape.spec();
    PB_TRY(out.layout_, (filled<&pb_attention::describe, pb_attention_layout>(c, &spec)));
    void* bound = nullptr;
    PB_CHECK(c.check(out.table().bind(c.self(), &spec, &bound), "bind"));
    out.bound_ = {bound, [&c, unbind = out.table().unbind](void* b) { unbind(c.self(), b); }};
    if (out.layout_.page_bytes == 0 || out.layout_.page_bytes > 1u << 26 || out.layout_.plan_bytes > 1u << 26)
        return fail("a page of " + std::to_string(out.layout_.page_bytes) + " bytes and a plan of " +
                    std::to_string(out.layout_.plan_bytes) + " make no sense for a small layer");
    out.layout_.page_bytes = (out.layout_.page_bytes + 63) / 64 * 64; // as the host strides them
    PB_TRY(out.memory_, FencedMemory::create(out.layout_.page_bytes * pages, out.layout_.page_bytes));
    out.plan_.resize(out.layout_.plan_bytes / 8 + 1);
    out.pages_ = pages;
    if (shape.device) {
        PB_TRY(out.memory_there_, DeviceBuffer::send(*shape.device, out.memory_.data(), out.memory_.size()));
        PB_TRY(out.plan_there_, send(*shape.device, out.plan_));
        PB_TRY(out.sinks_there_, send(*shape.device, out.shape_.sinks));
    }
    return out;
}

uint32_t Pages::page_of(uint32_t sequence, uint32_t block) {
    if (blocks_.size() <= sequence) blocks_.resize(sequence + 1);
    auto& blocks = blocks_[sequence];
    // Pages lie anywhere, so no two of a sequence are neighbours: 5 and the (odd) count have no common factor.
    while (blocks.size() <= block) blocks.push_back(static_cast<int32_t>((taken_++ * 5 + 2) % pages_));
    return static_cast<uint32_t>(blocks[block]);
}

void Pages::free_before(uint32_t sequence, uint32_t block) {
    std::fill_n(blocks_[sequence].begin(), block, -1);
}

Result<std::vector<uint8_t>> Pages::page(uint32_t index) const {
    if (memory_there_) PB_CHECK(memory_there_->fetch());
    const auto* from = reinterpret_cast<const uint8_t*>(memory_.data()) + index * layout_.page_bytes;
    return std::vector<uint8_t>(from, from + layout_.page_bytes);
}

Result<std::vector<float>> Pages::step(const std::vector<Part>& parts) { return step(parts, Write::kYes); }

Result<std::vector<float>> Pages::step(const std::vector<Part>& parts, Write write) {
    constexpr int32_t kOtherGroups = 3; // pages that come before, as those of other groups do
    const size_t width = size_t{shape_.heads} * shape_.head_dim, kv_width = size_t{shape_.kv_heads} * shape_.head_dim;
    std::vector<int32_t> starts = {0}, lens, positions, block_starts = {kOtherGroups}, blocks(kOtherGroups, -1);
    std::vector<int64_t> slots;
    std::vector<float> q, k, v;
    uint32_t max_query = 0, max_len = 0;
    for (const Part& p : parts) {
        const auto add = [&](std::vector<float>& to, const std::vector<float>& from, size_t w) {
            to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(p.from * w),
                      from.begin() + static_cast<ptrdiff_t>(p.to * w));
        };
        add(q, p.tokens->q, width);
        add(k, p.tokens->k, kv_width);
        add(v, p.tokens->v, kv_width);
        for (uint32_t t = p.from; t < p.to; ++t) {
            positions.push_back(static_cast<int32_t>(t));
            const int64_t slot =
                int64_t{page_of(p.sequence, t / shape_.block_size)} * shape_.block_size + t % shape_.block_size;
            slots.push_back(write == Write::kYes ? slot : -1);
        }
        starts.push_back(static_cast<int32_t>(positions.size()));
        lens.push_back(static_cast<int32_t>(p.to));
        const uint32_t used = (p.to + shape_.block_size - 1) / shape_.block_size;
        for (uint32_t b = 0; b < used; ++b) blocks.push_back(static_cast<int32_t>(page_of(p.sequence, b)));
        block_starts.push_back(static_cast<int32_t>(blocks.size()));
        max_query = std::max(max_query, p.to - p.from);
        max_len = std::max(max_len, p.to);
    }
    const auto tokens = static_cast<int64_t>(positions.size());
    const pb_attention_batch batch{sizeof batch,
                                   static_cast<uint32_t>(parts.size()),
                                   static_cast<uint32_t>(tokens),
                                   0,
                                   starts.data(),
                                   lens.data(),
                                   block_starts.data(),
                                   blocks.data(),
                                   slots.data(),
                                   positions.data(),
                                   max_query,
                                   max_len};
    std::vector<float> out(static_cast<size_t>(tokens) * width, std::numeric_limits<float>::quiet_NaN());
    const Step step{batch, &q, &k, &v, &out};
    PB_CHECK(shape_.device ? compute_there(step) : compute(step));
    return out;
}

// q, k, v and out: of the step, or where they lie on the device.
Result<> Pages::call(const pb_attention_batch* batch, const pb_kv_view* kv, void* plan, void* q, void* k, void* v,
                     void* out) {
    const int64_t tokens = batch->token_count, heads = shape_.heads, kv_heads = shape_.kv_heads, dim = shape_.head_dim;
    const int32_t device = shape_.device ? 1 : 0;
    const pb_tensor qt = tensor(q, PB_F32, {tokens, heads, dim}, device),
                    ot = tensor(out, PB_F32, {tokens, heads, dim}, device),
                    kt = tensor(k, PB_F32, {tokens, kv_heads, dim}, device),
                    vt = tensor(v, PB_F32, {tokens, kv_heads, dim}, device);
    void* const self = component_->self();
    PB_CHECK(component_->check(table().plan(self, bound_.get(), batch, layout_.plan_bytes ? plan : nullptr), "plan"));
    table().append_kv(self, bound_.get(), batch, kv, &kt, &vt);
    table().run(self, bound_.get(), batch, kv, &ot, &qt);
    return {};
}

pb_kv_view Pages::view(void* memory, const float* sinks) const {
    return {sizeof(pb_kv_view), 0, static_cast<uint8_t*>(memory), layout_.page_bytes, pages_, 0,
            shape_.sinks.empty() ? nullptr : sinks};
}

Result<> Pages::compute(const Step& s) {
    LentMemory memory; // of the step
    PB_CHECK(call(memory.lend(s.batch), memory.lend(view(memory_.data(), shape_.sinks.data())), plan_.data(),
                  s.q->data(), s.k->data(), s.v->data(), s.out->data()));
    return memory.end_call() ? Result<>() : fail("it writes past the end of its batch");
}

Result<> Pages::compute_there(const Step& s) {
    const host::Component& device = *shape_.device;
    const auto& its = *static_cast<const pb_device*>(device.type().vtable);
    pb_attention_batch b = s.batch;
    const auto copy = [&](const auto* values, size_t count) {
        std::vector copied(values, values + count);
        return send(device, copied);
    };
    PB_TRY(const auto starts, copy(b.query_starts, b.seq_count + 1));
    PB_TRY(const auto lens, copy(b.seq_lens, b.seq_count));
    PB_TRY(const auto slots, copy(b.slot_mapping, b.token_count));
    PB_TRY(const auto positions, copy(b.positions, b.token_count));
    PB_TRY(const auto firsts, copy(b.block_starts, b.seq_count + 1));
    PB_TRY(const auto listed, copy(b.blocks, static_cast<size_t>(b.block_starts[b.seq_count])));
    PB_TRY(const auto q, send(device, *s.q));
    PB_TRY(const auto k, send(device, *s.k));
    PB_TRY(const auto v, send(device, *s.v));
    PB_TRY(const auto out, send(device, *s.out));
    b.device = {starts->at<int32_t>(), lens->at<int32_t>(),  firsts->at<int32_t>(),
                listed->at<int32_t>(), slots->at<int64_t>(), positions->at<int32_t>()};
    if (its.queue) b.queue = its.queue(device.self());
    const pb_kv_view kv = view(memory_there_->at<void>(), sinks_there_->at<float>());
    PB_CHECK(device.check(its.begin_step(device.self()), "begin_step"));
    PB_CHECK(call(&b, &kv, plan_there_->at<void>(), q->at<void>(), k->at<void>(), v->at<void>(), out->at<void>()));
    PB_CHECK(device.check(its.end_step(device.self()), "end_step"));
    return out->fetch();
}

}  // namespace patchbay::conformance
