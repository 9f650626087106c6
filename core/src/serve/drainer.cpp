#include "serve/drainer.hpp"

namespace patchbay::serve {

void Drainer::begin(HttpServer& http) {
    const std::lock_guard lock(mutex_);
    if (!admission_.close()) return;
    thread_ = std::thread([this, &http] {
        gate_.wait_until_calm(); // those that wait for another model are under way, too
        engine_.drain();
        http.stop_listening();
        http.wait_until_closed(); // of each connection the last answer is sent, or its deadline has passed
        engine_.stop();
    });
}

void Drainer::join() {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable()) thread_.join();
}

}  // namespace patchbay::serve
