// replays - a device and an attention that have graphs as a GPU has: what is called during a capture is kept with
// copies of its arguments and run at each launch, over what memory holds by then. Memory is the device's own: the
// host's arrays are never looked at after plan(). Plain loops over f32.
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>

#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/device.hpp"
#include "specimens/plain_loops.hpp"

struct pb_graph {
    std::vector<std::function<void()>> calls;
};

namespace {

using patchbay::Error;
namespace kernels = patchbay::kernels;

thread_local pb_graph* recording = nullptr; // as a stream that is captured

void enqueue(std::function<void()> call) {
    if (recording) recording->calls.push_back(std::move(call));
    else call();
}

template <class T>
auto kept(T argument) {
    if constexpr (std::is_same_v<T, const pb_tensor*>) return *argument;
    else return argument;
}

template <class T, class Kept>
T given(const Kept& kept) {
    if constexpr (std::is_same_v<T, const pb_tensor*>) return &kept;
    else return kept;
}

template <auto Op>
struct InOrder;
template <class... A, void (*Op)(void*, A...)>
struct InOrder<Op> {
    static void call(void* ctx, A... arguments) {
        enqueue([ctx, all = std::make_tuple(kept<A>(arguments)...)] {
            std::apply([&](const auto&... one) { Op(ctx, given<A>(one)...); }, all);
        });
    }
};

class Device : public specimens::Loops {
  public:
    Device() {
        ops_.embedding = InOrder<specimens::embedding>::call;
        ops_.linear = InOrder<specimens::linear>::call;
        ops_.rms_norm = InOrder<specimens::rms_norm>::call;
        ops_.add_rms_norm = InOrder<specimens::add_rms_norm>::call;
        ops_.rope = InOrder<specimens::rope>::call;
        ops_.silu_mul = InOrder<specimens::silu_mul>::call;
        ops_.add = InOrder<specimens::add>::call;
        ops_.gather_rows = InOrder<specimens::gather_rows>::call;
    }

    pb_device_info info() const {
        pb_device_info out = Loops::info();
        out.graphs = 1;
        out.host_memory = 0;
        return out;
    }
    void graph_begin() {
        captured_ = std::make_unique<pb_graph>();
        recording = captured_.get();
    }
    pb_graph* graph_end() {
        recording = nullptr;
        return captured_.release();
    }
    void graph_launch(pb_graph* graph) {
        for (const auto& call : graph->calls) call();
    }
    void graph_free(pb_graph* graph) noexcept { delete graph; }
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return graph->calls.size() * 100; }

  private:
    std::unique_ptr<pb_graph> captured_;
};

class Attention {
  public:
    static constexpr const char* kGraphs[] = {"none", "decode", "any", nullptr};
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("graphs", "any", kGraphs, "batches that it lets be captured"),
    };
    explicit Attention(const patchbay::Context& context) : graphs_(context.get<std::string>("graphs")) {}

    struct Bound {
        kernels::AttentionShape shape;
        int32_t* lengths = nullptr; // in the plan buffer, as "on the device"
    };

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        if (std::string_view(spec.device) != "replays" || spec.kv_dtype != PB_F32)
            throw Error(PB_UNSUPPORTED, "only f32 on replays");
        pb_attention_layout out{};
        out.struct_size = sizeof out;
        out.graphs = graphs_ == "any" ? PB_GRAPHS_ANY : graphs_ == "decode" ? PB_GRAPHS_DECODE : PB_GRAPHS_NONE;
        out.page_bytes = kernels::reference::page_bytes(shape_of(spec));
        out.plan_bytes = spec.max_seqs * sizeof(int32_t);
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "replays");
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) const {
        return std::make_unique<Bound>(Bound{shape_of(spec)});
    }
    // What run() reads in place of the batch's seq_lens, so that a replay without a plan of its own would show.
    void plan(Bound& bound, const pb_attention_batch& batch, void* buffer) const {
        bound.lengths = static_cast<int32_t*>(buffer);
        std::memcpy(buffer, batch.seq_lens, batch.seq_count * sizeof(int32_t));
    }
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        enqueue([bound, sizes = sizes_of(batch), kv, k, v] {
            Tables tables;
            kernels::reference::append_kv(bound.shape, tables.read(bound, sizes), {kv.data, kv.page_stride}, k, v);
        });
    }
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        enqueue([bound, sizes = sizes_of(batch), kv, out, q] {
            Tables tables;
            const kernels::AttentionBatch b = tables.read(bound, sizes);
            for (uint32_t s = 0; s < b.seq_count; ++s)
                kernels::reference::attend(bound.shape, b, {kv.data, kv.page_stride}, out, q, s, b.query_starts[s],
                                           b.query_starts[s + 1]);
        });
    }

  private:
    struct Sizes { // all that may be kept of a batch for its graph
        uint32_t sequences, tokens;
        pb_attention_arrays device;
    };
    static Sizes sizes_of(const pb_attention_batch& b) { return {b.seq_count, b.token_count, b.device}; }

    struct Tables { // in rows of equal length
        std::vector<int32_t> rows;
        kernels::AttentionBatch read(const Bound& bound, const Sizes& b) {
            int32_t most = 1;
            for (uint32_t s = 0; s < b.sequences; ++s)
                most = std::max(most, b.device.block_starts[s + 1] - b.device.block_starts[s]);
            rows.assign(size_t{b.sequences} * size_t(most), -1);
            for (uint32_t s = 0; s < b.sequences; ++s)
                std::copy(b.device.blocks + b.device.block_starts[s], b.device.blocks + b.device.block_starts[s + 1],
                          rows.begin() + int64_t{s} * most);
            return {.seq_count = b.sequences,
                    .max_blocks = uint32_t(most),
                    .token_count = int32_t(b.tokens),
                    .query_starts = b.device.query_starts,
                    .seq_lens = bound.lengths,
                    .block_tables = rows.data(),
                    .slot_mapping = b.device.slot_mapping,
                    .positions = b.device.positions};
        }
    };

    static kernels::AttentionShape shape_of(const pb_attention_spec& s) {
        return {.heads = int32_t(s.heads),
                .kv_heads = int32_t(s.kv_heads),
                .head_dim = int32_t(s.head_dim),
                .block_size = int32_t(s.block_size),
                .window = s.sliding_window,
                .scale = s.scale,
                .soft_cap = s.soft_cap,
                .kv_dtype = s.kv_dtype};
    }

    std::string graphs_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<Device>({.name = "replays", .version = "1.0.0",
                                          .summary = "computes by plain loops, also by graphs that it captured"}),
                patchbay::attention<Attention>({.name = "replays", .version = "1.0.0",
                                                .summary = "attention that the device replays can capture"}))
