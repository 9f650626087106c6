// replays - a device and an attention that have graphs as a GPU has: what is called during a capture is kept with
// copies of its arguments and run at each launch, over what memory holds by then. Memory is the device's own: the
// host's arrays are never looked at after plan(), and a host that touches the device's ends there. Plain loops, f32.
// queues - the same device, whose calls a thread of its own makes while the host goes on: steps can be in flight.
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>

#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/device.hpp"
#include "replays_sampler.hpp"
#include "specimens/plain_loops.hpp"

namespace {

using namespace replays;
namespace kernels = patchbay::kernels;

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

Queue* queue_of(void* device);

template <auto Op>
struct InOrder;
template <class... A, void (*Op)(void*, A...)>
struct InOrder<Op> {
    static void call(void* ctx, A... arguments) {
        enqueue(queue_of(ctx), [ctx, all = std::make_tuple(kept<A>(arguments)...)] {
            std::apply([&](const auto&... one) { Op(ctx, given<A>(one)...); }, all);
        });
    }
};

class Device : public specimens::Loops {
  public:
    Device() {
        ops_.ctx = this;
        ops_.embedding = InOrder<embedding>::call;
        ops_.linear = InOrder<specimens::linear>::call;
        ops_.rms_norm = InOrder<specimens::rms_norm>::call;
        ops_.add_rms_norm = InOrder<specimens::add_rms_norm>::call;
        ops_.rope = InOrder<specimens::rope>::call;
        ops_.silu_mul = InOrder<specimens::silu_mul>::call;
        ops_.add = InOrder<specimens::add>::call;
        ops_.gather_rows = InOrder<specimens::gather_rows>::call;
        ops_.fill_placeholders = InOrder<fill_placeholders>::call;
    }
    Device(const Device&) = delete;

    pb_device_info info() const {
        pb_device_info out = Loops::info();
        out.host_memory = 0;
        return out;
    }
    void* alloc(uint64_t bytes) { return memory().take(bytes); }
    void free(void*) {}
    void to_device(void* to, const void* from, uint64_t n) {
        if (n > 0) std::memcpy(memory().here(to), from, n);
    }
    void to_host(void* to, const void* from, uint64_t n) {
        if (n > 0) std::memcpy(to, memory().here(from), n);
    }
    void copy_page(void* to, const void* from, uint64_t n) {
        enqueue(queue_, [to, from, n] { std::memmove(memory().here(to), memory().here(from), n); });
    }
    void begin_step() { fault_.clear(); }
    void end_step() {
        if (!fault_.empty()) throw Error(PB_INVALID, fault_);
    }
    void graph_begin() {
        captured_ = std::make_unique<pb_graph>();
        captured_->calls = std::make_shared<std::vector<Call>>();
        recording = captured_.get();
    }
    pb_graph* graph_end() {
        recording = nullptr;
        return captured_.release();
    }
    void graph_launch(pb_graph* graph) {
        enqueue(queue_, [calls = graph->calls] {
            for (const Call& call : *calls) call();
        });
    }
    void graph_free(pb_graph* graph) noexcept { delete graph; }
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return graph->calls->size() * 100; }

    // An id that is none spoils the whole step.
    static void embedding(void* ctx, const pb_tensor* out, const pb_weight* w, const pb_tensor* ids) {
        for (int64_t t = 0; t < ids->shape[0]; ++t)
            if (const int32_t id = specimens::id(*ids, t); id < 0 || id >= w->rows) {
                static_cast<Device*>(ctx)->fault_ = "embedding: there is no row " + std::to_string(id);
                for (int64_t r = 0; r < out->shape[0]; ++r) std::fill_n(specimens::row(*out, r), w->cols, NAN);
                return;
            }
        specimens::embedding(ctx, out, w, ids);
    }
    static void fill_placeholders(void* ctx, const pb_tensor* ids, const pb_tensor* sampled) {
        for (int64_t t = 0; t < ids->shape[0]; ++t) {
            int32_t& at = static_cast<int32_t*>(ids->data)[t];
            if (at >= 0) continue;
            if (~at < sampled->shape[0]) at = static_cast<const int32_t*>(sampled->data)[~at];
            else
                static_cast<Device*>(ctx)->fault_ =
                    "fill_placeholders: row " + std::to_string(~at) + " was not sampled";
        }
    }

  protected:
    friend Queue* queue_of(void*);
    Queue* queue_ = nullptr; // null: calls are made at once
    std::string fault_;      // of the calls that are made now

  private:
    std::unique_ptr<pb_graph> captured_;
};

Queue* queue_of(void* device) { return static_cast<Device*>(device)->queue_; }

class Queues : public Device {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::boolean("late", "true", "begin with a step when another is submitted, or it is waited for"),
    };
    explicit Queues(const patchbay::Context& context) : metrics_(context.host()) {
        own_.emplace(context.get<bool>("late"));
        queue_ = &*own_;
    }

    pb_device_info info() const {
        pb_device_info out = Device::info();
        std::snprintf(out.compatible_with, sizeof out.compatible_with, "replays");
        return out;
    }
    void free(void* taken) {
        if (taken) queue_->push([taken] { memory().poison(taken); });
    }
    void to_device(void* to, const void* from, uint64_t n) {
        const auto* const bytes = static_cast<const std::byte*>(from);
        queue_->push([to, copy = std::vector<std::byte>(bytes, bytes + n)] {
            if (!copy.empty()) std::memcpy(memory().here(to), copy.data(), copy.size());
        });
    }
    void to_host(void* to, const void* from, uint64_t n) {
        to_host_async(to, from, n);
        queue_->wait_for_all();
    }
    void to_host_async(void* to, const void* from, uint64_t n) {
        queue_->push([to, from, n] {
            if (n > 0) std::memcpy(to, memory().here(from), n);
        });
    }
    void* host_alloc(uint64_t n) const { return ::operator new(n, std::align_val_t{64}); }
    void host_free(void* pages) noexcept { ::operator delete(pages, std::align_val_t{64}); }
    void page_to_host(void* to, const void* from, uint64_t n) { to_host_async(to, from, n); }
    void page_to_device(void* to, const void* from, uint64_t n) { // read as late as it may be
        queue_->push([to, from, n] { std::memcpy(memory().here(to), from, n); });
    }
    void begin_step() {}
    void submit_step() {
        auto fault = std::make_shared<std::string>();
        queue_->push([this, fault] { fault->swap(fault_); });
        faults_.push_back(std::move(fault));
        if (queue_->mark()) metrics_.add("overlapped_steps", 1);
    }
    void wait_step() {
        queue_->wait_for_mark();
        const auto fault = std::move(faults_.front());
        faults_.pop_front();
        if (!fault->empty()) throw Error(PB_INVALID, *fault);
    }
    void end_step() {
        std::string fault;
        queue_->push([this, &fault] { fault.swap(fault_); });
        queue_->wait_for_all();
        if (!fault.empty()) throw Error(PB_INVALID, fault);
    }
    void* queue() const { return queue_; }

  private:
    patchbay::Metrics metrics_;
    std::deque<std::shared_ptr<std::string>> faults_; // of steps that were submitted
    std::optional<Queue> own_;                        // ends before what its calls use
};

class Attention {
  public:
    static constexpr const char* kGraphs[] = {"none", "decode", "any", nullptr};
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("graphs", "any", kGraphs, "batches that it lets be captured"),
    };
    explicit Attention(const patchbay::Context& context) : graphs_(context.get<std::string>("graphs")) {}

    static constexpr const char* kDevice = "replays";
    struct Bound {
        kernels::AttentionShape shape;
        int32_t* lengths = nullptr; // in the plan buffer, as "on the device"
    };

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        if (std::string_view(spec.device) != "replays" || spec.kv_dtype != PB_F32 || spec.activation_dtype != PB_F32)
            throw Error(PB_UNSUPPORTED, "only f32 on replays");
        if (spec.kv_heads == 0 || spec.heads % spec.kv_heads != 0 || spec.head_dim == 0 || spec.block_size == 0)
            throw Error(PB_UNSUPPORTED, "no such layer");
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
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
        enqueue(static_cast<Queue*>(batch.queue),
                [to = bound.lengths, all = std::vector(batch.seq_lens, batch.seq_lens + batch.seq_count)] {
                    std::copy(all.begin(), all.end(), to);
                });
    }
    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        Queue* const queue = static_cast<Queue*>(batch.queue);
        enqueue(queue, [bound, sizes = sizes_of(batch), kv = here(kv), k = here(k), v = here(v)] {
            kernels::reference::append_kv(bound.shape, read(bound, sizes), {kv.data, kv.page_stride}, k, v);
        });
    }
    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        Queue* const queue = static_cast<Queue*>(batch.queue);
        enqueue(queue, [bound, sizes = sizes_of(batch), kv = here(kv), out = here(out), q = here(q)] {
            const kernels::AttentionBatch b = read(bound, sizes);
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
    static pb_tensor here(const pb_tensor& t) { return replays::here(t); }

    static kernels::AttentionBatch read(const Bound& bound, const Sizes& b) {
        return {.seq_count = b.sequences,
                .token_count = int32_t(b.tokens),
                .query_starts = b.device.query_starts,
                .seq_lens = bound.lengths,
                .block_starts = b.device.block_starts,
                .blocks = b.device.blocks,
                .slot_mapping = b.device.slot_mapping,
                .positions = b.device.positions};
    }

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
                patchbay::device<Queues>({.name = "queues", .version = "1.0.0",
                                          .summary = "the same, while the host goes on"}),
                patchbay::attention<Attention>({.name = "replays", .version = "1.0.0",
                                                .summary = "attention that the device replays can capture"}),
                patchbay::sampler<Sampler>({.name = "replays", .version = "1.0.0",
                                            .summary = "draws on the devices replays and queues"}))
