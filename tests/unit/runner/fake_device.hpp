// A device that a test plays, in this process and without a library: its memory is the host's heap, steps are counted,
// and time is what the test says.
#pragma once
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "patchbay/sdk/device.hpp"
#include "runner/open_device.hpp"

namespace patchbay::runner::testing {

struct FakeDevice {
    bool computes = true, own_memory = true;
    uint64_t charged = 0, host = 0;  // nanoseconds of each step
    std::vector<std::string> calls;  // begin_step, submit_step, …
    std::string fault;               // of the next step that ends or is waited for
    uint32_t allocated = 0, released = 0; // weights
    uint32_t graphs = 0, graphs_ever = 0;
    uint64_t copied_bytes = 0;            // to the host
    uint32_t memories = 0;                // that were allocated and are not freed
    uint64_t memory_bytes = 0;            // of these
    std::map<void*, uint64_t> sizes;      // of each
    bool is_full = false;                 // there is no memory for another one
    std::vector<pb_cost> costs;           // that were charged
    std::function<void(const pb_weight_source&)> preparing; // sees each weight, and may refuse it

    pb_device_info info() const {
        pb_device_info out = sized<pb_device_info>();
        out.computes = computes;
        out.host_memory = !own_memory;
        out.activation_dtype = PB_F32;
        return out;
    }
    void* alloc(uint64_t size) {
        if (is_full) throw Error(PB_FAILED, "there is no memory");
        memories += 1;
        memory_bytes += size;
        void* const memory = std::calloc(size, 1);
        sizes[memory] = size;
        return memory;
    }
    void free(void* memory) {
        memories -= 1;
        memory_bytes -= sizes.at(memory);
        sizes.erase(memory);
        std::free(memory);
    }
    void copy(void* to, const void* from, uint64_t bytes) const { // where nothing is computed there is nothing
        if (computes) std::memcpy(to, from, bytes);
    }
    void to_device(void* to, const void* from, uint64_t bytes) { copy(to, from, bytes); }
    void to_host(void* to, const void* from, uint64_t bytes) {
        copy(to, from, bytes);
        copied_bytes += bytes;
    }
    pb_weight* prepare(const pb_weight_source& source) {
        if (preparing) preparing(source);
        allocated += 1;
        return reinterpret_cast<pb_weight*>(uintptr_t{allocated}); // a number is enough
    }
    void release(pb_weight*) { released += 1; }
    uint64_t weight_bytes(const pb_weight*) { return 100; }
    const pb_ops* ops() { // none but those of ranks, which change nothing
        static const pb_ops all = [] {
            pb_ops out = sized<pb_ops>();
            out.all_reduce = [](void*, const pb_tensor*) {};
            out.all_gather = [](void*, const pb_tensor*, const pb_tensor*) {};
            return out;
        }();
        return &all;
    }
    void connect(const pb_group&) { calls.push_back("connect"); }
    void disconnect() { calls.push_back("disconnect"); }
    void begin_step() { calls.push_back("begin"); }
    void end_step() { end("end"); }
    void submit_step() { calls.push_back("submit"); }
    void wait_step() { end("wait"); }
    void to_host_async(void* to, const void* from, uint64_t bytes) { to_host(to, from, bytes); }
    void copy_page(void* to, const void* from, uint64_t bytes) { copy(to, from, bytes); }
    // A graph is a number; those that were given back are not there any more.
    void graph_begin() { calls.push_back("graph_begin"); }
    pb_graph* graph_end() {
        calls.push_back("graph_end");
        graphs += 1;
        return reinterpret_cast<pb_graph*>(uintptr_t{++graphs_ever});
    }
    void graph_launch(pb_graph*) { calls.push_back("graph_launch"); }
    void graph_free(pb_graph*) { graphs -= 1; }
    uint64_t graph_bytes(const pb_graph*) { return 100; }
    void charge(const pb_cost& cost) { costs.push_back(cost); }
    uint64_t charged_ns() { return charged; }
    uint64_t host_ns() { return host; }

    void end(const char* call) {
        calls.push_back(call);
        if (fault.empty()) return;
        const std::string why = std::exchange(fault, "");
        throw std::runtime_error(why);
    }
};

inline constexpr pb_component kFakeDevice = device<FakeDevice>({"fake", "1.0.0", "plays"});

// The device, and what the test says and sees of it.
struct PlayedDevice {
    explicit PlayedDevice(bool computes = true, bool own_memory = true)
        : opened({*host::Component::create(nullptr, kFakeDevice, {}, {}),
                  static_cast<const pb_device*>(kFakeDevice.vtable)}, "fake"),
          fake(static_cast<detail::Box<FakeDevice>*>(opened.plugin.self())->value) {
        fake.computes = computes;
        fake.own_memory = own_memory;
        (void)opened.read_info();
        opened.read_ops();
    }
    OpenDevice opened;
    FakeDevice& fake;
};

}  // namespace patchbay::runner::testing
