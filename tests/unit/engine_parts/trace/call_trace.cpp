#include "unit/engine_parts/trace/call_trace.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>

namespace {

std::atomic<bool> tracing = false;
std::atomic<size_t> calls = 0;
std::array<void*, 1 << 18> called;

}  // namespace

extern "C" void __cyg_profile_func_enter(void* function, void*) {
    if (!tracing.load(std::memory_order_relaxed)) return;
    if (const size_t at = calls.fetch_add(1); at < called.size()) called[at] = function;
}
extern "C" void __cyg_profile_func_exit(void*, void*) {}

namespace patchbay::testing {
namespace {

std::string name_of(void* function) {
    Dl_info info{};
    if (dladdr(function, &info) == 0 || !info.dli_sname) return "";
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                      std::free);
    const std::string name = text ? text.get() : info.dli_sname;
    return name.substr(0, name.find('('));
}

}  // namespace

void begin_trace() {
    calls = 0;
    tracing = true;
}

std::vector<std::string> end_trace() {
    tracing = false;
    std::vector<void*> first;
    for (size_t i = 0; i < std::min(calls.load(), called.size()); ++i)
        if (std::ranges::find(first, called[i]) == first.end()) first.push_back(called[i]);
    std::vector<std::string> out;
    for (void* function : first)
        if (const std::string name = name_of(function); !name.empty()) out.push_back(name);
    return out;
}

}  // namespace patchbay::testing
