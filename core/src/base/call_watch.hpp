// Whether a thread's plugin calls return. Another thread looks at the record of plugin_call.hpp now and then, at no
// cost to the calls. For programs that can end the process when one does not.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/plugin_call.hpp"

namespace patchbay {

class CallWatch {
  public:
    using LimitNs = std::function<uint64_t()>; // as of now; 0: none
    // Watches the thread that makes it. overdue: called once, on the watching thread, when a call, or calls of one name
    // in one step, went on for the limit; with "scheduler 'fcfs': plan: did not return within 300 s in step 12". Time
    // in which the process was stopped does not count. clock: null: the real one; it outlives the watch.
    CallWatch(LimitNs limit, std::function<void(const std::string&)> overdue, const Clock* clock = nullptr);
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;

  private:
    void watch(const CallRecord& watched);

    const LimitNs limit_;
    const std::function<void(const std::string&)> overdue_;
    const RealClock real_;
    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_; // last: it uses the others
};

}  // namespace patchbay
