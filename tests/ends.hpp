// Whether something ends at all: so that a test of what may hang fails, and does not hang itself.
#pragma once
#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace patchbay {

// Calls f on a thread of its own. False: it has not returned after a minute; it goes on, so that f has to own all that
// it uses. What it throws is thrown here.
template <class F>
bool ends(F f) {
    std::packaged_task<void()> task(std::move(f));
    std::future<void> done = task.get_future();
    std::thread(std::move(task)).detach();
    if (done.wait_for(std::chrono::minutes(1)) != std::future_status::ready) return false;
    done.get();
    return true;
}

}  // namespace patchbay
