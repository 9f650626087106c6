#include "base/thread_stack.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include "base/crash_report.hpp"

namespace patchbay {
namespace {

constexpr size_t kStackBytes = 8u << 20;

bool has_room() {
    rlimit limit{};
    return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kStackBytes;
}

void* call(void* work) {
    const SignalStack stack;
    (*static_cast<const std::function<void()>*>(work))();
    return nullptr;
}

}  // namespace

void run_with_stack(const std::function<void()>& work) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread;
    const bool here = has_room();
    if (!here) pthread_setattr_default_np(&attributes);
    const bool started =
        !here && pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&work)) == 0;
    pthread_attr_destroy(&attributes);
    if (started) pthread_join(thread, nullptr);
    else call(const_cast<std::function<void()>*>(&work));
}

}  // namespace patchbay
