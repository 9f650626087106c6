#include "unit/engine_parts/trace/call_trace.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace {

using Pair = std::pair<void*, void*>; // a function and its caller

std::atomic<bool> tracing = false;
std::mutex mutex;
std::set<Pair> seen;
std::vector<Pair> called;

thread_local std::array<void*, 1024> frames; // traced functions that this thread is in
thread_local size_t depth = 0;

// With its arguments; empty: the program does not export its name, as of lambdas.
std::string signature_of(void* function) {
    Dl_info info{};
    if (!function || dladdr(function, &info) == 0 || info.dli_saddr != function) return "";
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                      std::free);
    return text ? text.get() : info.dli_sname;
}

void* innermost_with_a_name() {
    for (size_t i = std::min(depth, frames.size()); i > 0; --i)
        if (signature_of(frames[i - 1]).starts_with("patchbay::")) return frames[i - 1];
    return nullptr;
}

}  // namespace

extern "C" void __cyg_profile_func_enter(void* function, void*) {
    if (tracing.load(std::memory_order_relaxed)) {
        const Pair call{function, innermost_with_a_name()};
        const std::lock_guard lock(mutex);
        if (seen.insert(call).second) called.push_back(call);
    }
    if (depth++ < frames.size()) frames[depth - 1] = function;
}
extern "C" void __cyg_profile_func_exit(void*, void*) { depth -= depth > 0; }

namespace patchbay::testing {

void begin_trace() {
    const std::lock_guard lock(mutex);
    seen.clear();
    called.clear();
    tracing = true;
}

std::vector<Call> end_trace() {
    tracing = false;
    const std::lock_guard lock(mutex);
    std::vector<Call> out;
    for (const auto& [function, caller] : called) {
        const std::string name = signature_of(function), from = signature_of(caller);
        if (name.empty()) continue;
        out.push_back({name.substr(0, name.find('(')), from.substr(0, from.find('(')), name.ends_with(" const")});
    }
    return out;
}

}  // namespace patchbay::testing
