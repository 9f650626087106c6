#include "cpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {
namespace {

constexpr uint64_t kMatrixUses = 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING;
constexpr uint64_t kVectorUse = 1u << PB_WEIGHT_VECTOR;

kernels::Isa choose_isa(const Context& context) {
    const kernels::IsaChoice choice =
        kernels::choose_isa(context.get<std::string>("isa"), std::getenv(kernels::kIsaVariable));
    switch (choice.verdict) {
        case kernels::IsaChoice::Verdict::Unknown: throw Error(PB_INVALID, choice.reason);
        case kernels::IsaChoice::Verdict::Unavailable: throw Error(PB_UNAVAILABLE, choice.reason);
        case kernels::IsaChoice::Verdict::Ok: break;
    }
    return choice.isa;
}

}  // namespace

CpuDevice::CpuDevice(const Context& context)
    : pool_(context.host()),
      clock_(context.host()),
      metrics_(context.host()),
      machine_{choose_isa(context), {}, &scratch_, &matrices_},
      ops_(cpu_ops(*this)) {
    machine_.workers.threads = pool_.threads();
    machine_.workers.ctx = &pool_;
    machine_.workers.run = [](void* ctx, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
        static_cast<const Pool*>(ctx)->run(count, [&](uint32_t i) { task(arg, i); });
    };
}

pb_device_info CpuDevice::info() const {
    pb_device_info out = patchbay::sized<pb_device_info>();
    out.computes = 1;
    out.activation_dtype = PB_F32;
    out.host_memory = 1;
    const HostMemory memory = host_memory();
    out.memory_total = memory.total;
    out.memory_free = memory.available;
    const char* isa = kernels::isa_name(machine_.isa);
    std::snprintf(out.name, sizeof out.name, "%s (%s)", kernels::cpu_brand().c_str(), isa);
    std::snprintf(out.isa, sizeof out.isa, "%s", isa);
    return out;
}

void* CpuDevice::alloc(uint64_t bytes) { return allocate_zeroed(bytes); }
void CpuDevice::free(void* memory) { free_zeroed(memory); }
void CpuDevice::to_device(void* to, const void* from, uint64_t bytes) { std::memmove(to, from, bytes); }
void CpuDevice::to_host(void* to, const void* from, uint64_t bytes) { std::memmove(to, from, bytes); }
void CpuDevice::copy_page(void* to, const void* from, uint64_t bytes) { std::memmove(to, from, bytes); }

pb_weight* CpuDevice::prepare(const pb_weight_source& source) {
    check_weight(source);
    auto weight = std::make_unique<pb_weight>();
    weight->uses = source.uses | uint64_t{1} << source.role;
    weight->rows = source.rows;
    weight->cols = source.cols;
    if (source.quant) {
        weight->matrix = kernels::PackedMatrix::pack(machine_, {.dtype = source.dtype,
                                                                .rows = source.rows,
                                                                .cols = source.cols,
                                                                .codes = source.data,
                                                                .group = source.quant->group,
                                                                .scales = source.quant->scales,
                                                                .offsets = source.quant->offsets,
                                                                .order = source.quant->order,
                                                                .bias = static_cast<const float*>(source.bias)});
        return weight.release();
    }
    if (weight->uses & kMatrixUses)
        weight->matrix = kernels::PackedMatrix::pack(machine_, source.dtype, source.rows, source.cols, source.data,
                                                     source.bias);
    if (weight->uses & kVectorUse) {
        weight->vector.resize(size_t(source.rows * source.cols));
        for (size_t i = 0; i < weight->vector.size(); ++i)
            weight->vector[i] = source.dtype == PB_BF16 ? bf16_to_f32(static_cast<const uint16_t*>(source.data)[i])
                                                        : static_cast<const float*>(source.data)[i];
    }
    return weight.release();
}

void CpuDevice::release(pb_weight* weight) { delete weight; }

uint64_t CpuDevice::weight_bytes(const pb_weight* weight) const {
    return (weight->matrix ? weight->matrix->bytes() : 0) + weight->vector.size() * sizeof(float);
}

std::vector<pb_limit> CpuDevice::measure() const {
    if (!clock_) throw Error(PB_UNAVAILABLE, "measuring needs the host's clock");
    constexpr uint64_t kMaxBytes = uint64_t{1} << 30; // more than caches hold; at most a quarter of free memory
    const uint64_t bytes = std::min(kMaxBytes, host_memory().available / 4);
    const auto now = [](void* ctx) { return static_cast<const HostClock*>(ctx)->now_ns(); };
    void* const clock = const_cast<HostClock*>(&clock_);
    std::vector<pb_limit> out;
    const auto add = [&](const char* name, const char* unit, double value) { out.push_back(limit(name, unit, value)); };
    add("memory_read", "B/s", kernels::measure_read(machine_, now, clock, bytes));
    for (uint64_t held = 256 << 10; held <= 512 << 20 && held < bytes; held *= 2) { // from caches, as far as it fits
        char name[32];
        const bool mebi = held >= 1 << 20;
        std::snprintf(name, sizeof name, "memory_read_%llu%s",
                      static_cast<unsigned long long>(mebi ? held >> 20 : held >> 10), mebi ? "MiB" : "KiB");
        add(name, "B/s", kernels::measure_read(machine_, now, clock, held));
    }
    add("matmul_f32", "FLOP/s", 2 * kernels::measure_multiply_add(machine_, now, clock, PB_F32));
    add("matmul_bf16", "FLOP/s", 2 * kernels::measure_multiply_add(machine_, now, clock, PB_BF16));
    add("matmul_i8", "OP/s", 2 * kernels::measure_multiply_add(machine_, now, clock, PB_I8));
    return out;
}

void CpuDevice::connect(const pb_group& group) {
    {
        const std::lock_guard lock(connecting_); // disconnect() may use it from here on
        if (communicator_) disconnected_ = false; // it was of the connection before
        communicator_ = std::make_unique<Communicator>(group);
        if (disconnected_) communicator_->abort();
    }
    communicator_->connect(group);
    add_collectives(ops_);
}

void CpuDevice::disconnect() noexcept {
    const std::lock_guard lock(connecting_);
    disconnected_ = true;
    if (communicator_) communicator_->abort();
}

void CpuDevice::begin_step() { fault_.clear(); }

void CpuDevice::end_step() {
    if (fault_.empty()) return;
    const std::string text = std::exchange(fault_, {});
    throw Error(PB_INVALID, text);
}

}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::device<patchbay::CpuDevice>(
    {.name = "cpu", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "f32 activations; f32, bf16, 8-bit or 4-bit weights; on the host's cores"}))
