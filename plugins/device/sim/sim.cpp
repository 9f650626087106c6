#include "sim.hpp"

#include <cstdio>
#include <cstring>
#include <memory>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {
namespace {

struct alignas(64) Allocation { // what alloc() returns instead of memory
    uint64_t bytes;
};

[[noreturn]] void refuse(pb_status code, const std::string& why) { throw Error(code, "weight: " + why); }

void check_shape(const pb_weight_source& source) {
    constexpr int64_t kLargestSide = int64_t{1} << 31, kLargestArea = int64_t{1} << 40;
    if (source.role < PB_WEIGHT_LINEAR || source.role > PB_WEIGHT_VECTOR)
        refuse(PB_INVALID, "unknown role " + std::to_string(source.role));
    if (source.rows < 1 || source.cols < 1 || source.rows > kLargestSide || source.cols > kLargestSide ||
        source.rows > kLargestArea / source.cols)
        refuse(PB_INVALID, "shape (" + std::to_string(source.rows) + ", " + std::to_string(source.cols) + ")");
}

// As hardware stores it: codes without padding, and f16 scales.
uint64_t bytes_of(const pb_weight_source& source) {
    constexpr uint64_t kScaleBytes = 2;
    const auto rows = static_cast<uint64_t>(source.rows), cols = static_cast<uint64_t>(source.cols);
    if (source.quant) {
        if (!is_code(source.dtype))
            refuse(PB_UNSUPPORTED, std::string("quantised, of dtype ") + dtype_name(source.dtype) +
                                       ", this device takes codes of i8, i4 and fp8");
        if (source.quant->group == 0) refuse(PB_INVALID, "groups of 0 columns");
        const uint64_t groups = (cols + source.quant->group - 1) / source.quant->group;
        const uint64_t scales = groups * kScaleBytes * (source.quant->offsets ? 2 : 1);
        return rows * ((source.dtype == PB_I4 ? (cols + 1) / 2 : cols) + scales + (source.bias ? sizeof(float) : 0));
    }
    if (is_code(source.dtype))
        refuse(PB_INVALID, std::string("codes of ") + dtype_name(source.dtype) + " without scales");
    if (source.dtype != PB_F32 && source.dtype != PB_BF16)
        refuse(PB_UNSUPPORTED, std::string("dtype ") + dtype_name(source.dtype) +
                                   ", this device takes f32 and bf16, and quantised i8, i4 and fp8");
    return rows * (cols + (source.bias ? 1 : 0)) * static_cast<uint64_t>(dtype_bytes(source.dtype));
}

}  // namespace

SimDevice::SimDevice(const Context& context)
    : hardware_(context),
      activation_dtype_(context.get<std::string>("activation_dtype") == "f32" ? PB_F32 : PB_BF16),
      ops_(sim_ops(*this)) {}

pb_device_info SimDevice::info() const {
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.activation_dtype = activation_dtype_;
    out.memory_total = hardware_.memory_bytes;
    out.memory_free = hardware_.memory_bytes - used_bytes_;
    std::snprintf(out.name, sizeof out.name, "simulated %s", hardware_.name.c_str());
    std::snprintf(out.isa, sizeof out.isa, "sim");
    return out;
}

void SimDevice::take(uint64_t bytes, const char* what) {
    const uint64_t all = hardware_.memory_bytes;
    if (bytes > all - used_bytes_)
        throw Error(PB_FAILED, std::string(what) + " of " + std::to_string(bytes) + " bytes, but of the " +
                                   std::to_string(all) + " bytes of the simulated " + hardware_.name + " only " +
                                   std::to_string(all - used_bytes_) + " are free");
    used_bytes_ += bytes;
}

void* SimDevice::alloc(uint64_t bytes) {
    take(bytes, "memory");
    return new Allocation{bytes};
}

void SimDevice::free(void* memory) {
    const std::unique_ptr<Allocation> owned(static_cast<Allocation*>(memory));
    if (owned) used_bytes_ -= owned->bytes;
}

void SimDevice::to_host(void* to, const void*, uint64_t bytes) const { std::memset(to, 0, bytes); }

pb_weight* SimDevice::prepare(const pb_weight_source& source) {
    check_shape(source);
    const uint64_t uses = source.uses | uint64_t{1} << source.role, bytes = bytes_of(source);
    take(bytes, "a weight");
    return new pb_weight{uses, source.rows, source.cols, bytes, hardware_.peak(source.dtype)};
}

void SimDevice::release(pb_weight* weight) {
    used_bytes_ -= weight->bytes;
    delete weight;
}

void SimDevice::connect(const pb_group& group) {
    if (!(hardware_.beta_per_ns > 0))
        throw Error(PB_UNSUPPORTED, "the simulated " + hardware_.name + " is one rank, not one of " +
                                        std::to_string(group.size) + " (say its collective_bandwidth)");
    ranks_ = group.size;
    add_collectives(ops_);
}

void SimDevice::begin_step() {
    fault_.clear();
    captured_.reset();
    charged_ns_ = 0;
}

void SimDevice::submit_step() { submitted_.push_back(std::exchange(fault_, {})); }

void SimDevice::wait_step() {
    if (submitted_.empty()) throw Error(PB_INVALID, "wait_step without a step that was submitted");
    const std::string text = std::move(submitted_.front());
    submitted_.pop_front();
    if (!text.empty()) throw Error(PB_INVALID, text);
}

void SimDevice::end_step() {
    if (fault_.empty()) return;
    const std::string text = std::exchange(fault_, {});
    throw Error(PB_INVALID, text);
}

void SimDevice::copy_page(void*, const void*, uint64_t bytes) {
    charge(Work{.bytes = 2.0 * static_cast<double>(bytes)});
}

void SimDevice::page_to_host(void*, const void*, uint64_t bytes) {
    const auto moved = static_cast<double>(bytes);
    const double rate = hardware_.host_bytes_per_ns;
    charge(rate > 0 ? Work{.wire_ns = moved / rate} : Work{.bytes = 2 * moved});
}

// Launches overlap with nothing. Recording an op takes the host as long as launching one.
void SimDevice::charge(const Work& work) noexcept {
    const double ns = hardware_.ns_of(work);
    charged_ns_ += hardware_.launch_ns;
    if (captured_) captured_->ns += ns, captured_->nodes += 1;
    else charged_ns_ += ns;
}

void SimDevice::charge(const pb_cost& cost) noexcept { charged_ns_ += hardware_.ns_of(cost); }

void SimDevice::graph_begin() {
    if (captured_) throw Error(PB_INVALID, "graph_begin while another graph is captured");
    captured_ = std::make_unique<pb_graph>();
}

pb_graph* SimDevice::graph_end() {
    if (!captured_) throw Error(PB_INVALID, "graph_end without graph_begin");
    std::unique_ptr<pb_graph> graph = std::move(captured_);
    const double wanted = static_cast<double>(graph->nodes) * hardware_.graph_node_bytes;
    const auto bytes = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(wanted)));
    take(bytes, "a graph");
    graph->bytes = bytes;
    return graph.release();
}

void SimDevice::graph_launch(pb_graph* graph) {
    charged_ns_ += hardware_.graph_replay_ns + graph->ns + static_cast<double>(graph->nodes) * hardware_.graph_node_ns;
}

void SimDevice::graph_free(pb_graph* graph) noexcept {
    const std::unique_ptr<pb_graph> owned(graph);
    used_bytes_ -= owned->bytes;
}

std::vector<pb_limit> SimDevice::measure() const { return hardware_.limits(); }

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::SimDevice>(
    {.name = "sim", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "computes nothing: charges each op the time that the described hardware would take"}))
