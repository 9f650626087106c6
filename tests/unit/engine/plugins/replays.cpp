// replays - a device and an attention that have graphs as a GPU has: what is called during a capture is kept with
// copies of its arguments and run at each launch, over what memory holds by then. Memory is the device's own: the
// host's arrays are never looked at after plan(), and a host that touches the device's ends there. Plain loops, f32.
#include <sys/mman.h>
#include <unistd.h>

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

// The same bytes mapped twice: what the host is given can be neither read nor written; only here it is known where they
// can.
class OwnMemory {
  public:
    OwnMemory() {
        const int file = memfd_create("replays", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, kBytes) != 0) throw Error(PB_FAILED, "no memory for the device replays");
        away_ = map(file, PROT_NONE);
        here_ = map(file, PROT_READ | PROT_WRITE);
        close(file);
    }
    void* take(uint64_t bytes) { // zeroed
        const uint64_t size = (bytes + 4096) / 4096 * 4096;
        if (used_ + size > kBytes) throw Error(PB_FAILED, "the device replays is full");
        used_ += size;
        return away_ + (used_ - size);
    }
    template <class T>
    T* here(T* p) const { // where it can be reached
        const auto* const at = reinterpret_cast<const char*>(p);
        if (at < away_ || at >= away_ + kBytes) return p;
        return reinterpret_cast<T*>(here_ + (at - away_));
    }

  private:
    static constexpr uint64_t kBytes = uint64_t{16} << 30; // of addresses; memory is taken when it is written
    static char* map(int file, int access) {
        void* const p = mmap(nullptr, kBytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (p == MAP_FAILED) throw Error(PB_FAILED, "no addresses for the device replays");
        return static_cast<char*>(p);
    }
    char *away_ = nullptr, *here_ = nullptr;
    uint64_t used_ = 0; // nothing is used twice
};

OwnMemory& memory() { // of the device and its attention
    static OwnMemory own;
    return own;
}

pb_tensor here(pb_tensor t) {
    t.data = memory().here(t.data);
    return t;
}

thread_local pb_graph* recording = nullptr; // as a stream that is captured

void enqueue(std::function<void()> call) {
    if (recording) recording->calls.push_back(std::move(call));
    else call();
}

template <class T>
auto kept(T argument) {
    if constexpr (std::is_same_v<T, const pb_tensor*>) return here(*argument);
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
    void* alloc(uint64_t bytes) { return memory().take(bytes); }
    void free(void*) {}
    void to_device(void* to, const void* from, uint64_t n) { std::memcpy(memory().here(to), from, n); }
    void to_host(void* to, const void* from, uint64_t n) { std::memcpy(to, memory().here(from), n); }
    void copy_page(void* to, const void* from, uint64_t n) {
        std::memmove(memory().here(to), memory().here(from), n);
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
        bound.lengths = memory().here(static_cast<int32_t*>(buffer));
        std::memcpy(bound.lengths, batch.seq_lens, batch.seq_count * sizeof(int32_t));
    }
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        enqueue([bound, sizes = sizes_of(batch), kv = here(kv), k = here(k), v = here(v)] {
            Tables tables;
            kernels::reference::append_kv(bound.shape, tables.read(bound, sizes), {kv.data, kv.page_stride}, k, v);
        });
    }
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        enqueue([bound, sizes = sizes_of(batch), kv = here(kv), out = here(out), q = here(q)] {
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
    static Sizes sizes_of(const pb_attention_batch& b) {
        const OwnMemory& m = memory();
        const pb_attention_arrays& d = b.device;
        return {b.seq_count, b.token_count,
                {m.here(d.query_starts), m.here(d.seq_lens), m.here(d.block_starts), m.here(d.blocks),
                 m.here(d.slot_mapping), m.here(d.positions)}};
    }
    static pb_kv_view here(pb_kv_view kv) {
        kv.data = memory().here(kv.data);
        return kv;
    }
    static pb_tensor here(const pb_tensor& t) { return ::here(t); }

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
