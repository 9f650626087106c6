#include "serve/model_gate.hpp"

#include <utility>

namespace patchbay::serve {

std::shared_ptr<const Serving> ModelGate::serving() const {
    const std::lock_guard lock(mutex_);
    return serving_;
}

ModelGate::Entered ModelGate::entered() {
    inside_ += 1;
    return {serving_, std::shared_ptr<void>(this, [](ModelGate* gate) {
                {
                    const std::lock_guard lock(gate->mutex_);
                    gate->inside_ -= 1;
                }
                gate->changed_.notify_all();
            })};
}

void ModelGate::enter(std::function<void(Entered)> f) {
    Entered now;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return waiting_.push_back(std::move(f));
        now = entered();
    }
    f(std::move(now));
}

void ModelGate::close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.wait(lock, [&] { return inside_ == 0; });
}

void ModelGate::open(std::shared_ptr<const Serving> next) {
    std::vector<std::pair<std::function<void(Entered)>, Entered>> let_in;
    {
        const std::lock_guard lock(mutex_);
        if (next) serving_ = std::move(next);
        closed_ = false;
        for (auto& f : std::exchange(waiting_, {})) let_in.emplace_back(std::move(f), entered());
    }
    changed_.notify_all();
    for (auto& [f, entered] : let_in) f(std::move(entered));
}

void ModelGate::wait_until_calm() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || (!closed_ && inside_ == 0); });
}

void ModelGate::end() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
}

}  // namespace patchbay::serve
