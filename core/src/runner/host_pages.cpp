#include "runner/host_pages.hpp"

#include <sys/mman.h>

#include <string>

namespace patchbay::runner {

HostPages::~HostPages() {
    if (!memory_) return;
    if (has_own_calls()) device_.call<&pb_device_offload::host_free>(memory_);
    else munmap(memory_, uint64_t{slots_} * page_bytes_);
}

Result<> HostPages::allocate(uint32_t slots, uint64_t page_bytes, void* page) {
    slots_ = slots;
    page_bytes_ = page_bytes;
    if (slots == 0) return {};
    if (slots > UINT64_MAX / page_bytes)
        return fail(StatusCode::kInvalid,
                    "a swap space of " + std::to_string(slots) + " pages of " + std::to_string(page_bytes) +
                    " bytes is more than can be counted");
    const uint64_t bytes = uint64_t{slots} * page_bytes;
    if (has_own_calls()) {
        PB_CHECK(device_.checked<&pb_device_offload::host_alloc>(bytes, &memory_));
    } else if (info_.computes) { // it takes no room before it is used
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
        if (mapped == MAP_FAILED)
            return fail(StatusCode::kExhausted,
                        "cannot map " + std::to_string(bytes) + " bytes of swap space (lower swap_space)");
        memory_ = mapped;
    }
    return measure(page);
}

void* HostPages::slot(kv::BlockId id) const {
    return memory_ ? static_cast<uint8_t*>(memory_) + static_cast<uint64_t>(id) * page_bytes_ : nullptr;
}

// The page goes out and comes back as it was. The first time touches memory that is new.
Result<> HostPages::measure(void* page) {
    constexpr uint32_t kTimes = 4;
    const auto round_trips = [&](uint32_t times) -> Result<> {
        PB_CHECK(device_.checked<&pb_device::begin_step>());
        Result<> done;
        for (uint32_t i = 0; i < times && done; ++i) {
            done = copy(kv::Way::kToHost, 0, page);
            if (done) done = copy(kv::Way::kToDevice, 0, page);
        }
        PB_CHECK(device_.checked<&pb_device::end_step>());
        return done;
    };
    PB_CHECK(round_trips(1));
    const uint64_t start = clock_.now_ns();
    PB_CHECK(round_trips(kTimes));
    const uint64_t took = info_.computes ? clock_.now_ns() - start : device_.call<&pb_device_simulation::charged_ns>();
    ns_a_page_ = static_cast<double>(took) / (2 * kTimes);
    return {};
}

Result<> HostPages::copy(kv::Way way, kv::BlockId id, void* page) {
    constexpr double kWeight = 1.0 / 32; // of the latest copy
    const bool out = way == kv::Way::kToHost;
    void* const there = slot(id);
    if (has_own_calls())
        return out ? device_.checked<&pb_device_offload::page_to_host>(there, page, page_bytes_)
                   : device_.checked<&pb_device_offload::page_to_device>(page, there, page_bytes_);
    const uint64_t start = clock_.now_ns();
    PB_CHECK(out ? device_.checked<&pb_device::to_host>(there, page, page_bytes_)
                 : device_.checked<&pb_device::to_device>(page, there, page_bytes_));
    ns_a_page_ += kWeight * (static_cast<double>(clock_.now_ns() - start) - ns_a_page_);
    return {};
}

}  // namespace patchbay::runner
