#include "service/stream.hpp"

#include <algorithm>
#include <iterator>

namespace patchbay::service {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

// `more` comes after `to`, of the same output.
void merge(engine::RequestOutput& to, const engine::RequestOutput& more) {
    auto tokens = std::move(to.tokens);
    auto logprobs = std::move(to.logprobs);
    auto prompt_logprobs = std::move(to.prompt_logprobs);
    std::string text = std::move(to.text);
    to = more;
    append(tokens, more.tokens);
    append(logprobs, more.logprobs);
    append(prompt_logprobs, more.prompt_logprobs);
    to.tokens = std::move(tokens);
    to.logprobs = std::move(logprobs);
    to.prompt_logprobs = std::move(prompt_logprobs);
    text += more.text; // in place: the loop's thread copies only what is new
    to.text = std::move(text);
}

}  // namespace

Stream::Stream(uint32_t outputs, size_t max_queued, std::function<void()> on_ready)
    : outputs_(std::max(outputs, 1u)), max_queued_(std::max<size_t>(max_queued, 1)), on_ready_(std::move(on_ready)) {}

Result<engine::RequestId> Stream::accepted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return id_ || over(); });
    if (id_) return *id_;
    if (failure_) return *failure_;
    return patchbay::fail(StatusCode::kCancelled, "the request was aborted before an engine had it");
}

std::optional<engine::RequestOutput> Stream::next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || over(); });
    return take();
}

std::optional<engine::RequestOutput> Stream::try_next() {
    const std::lock_guard lock(mutex_);
    return take();
}

std::optional<engine::RequestOutput> Stream::take() {
    if (queue_.empty()) return std::nullopt;
    engine::RequestOutput out = std::move(queue_.front());
    queue_.pop_front();
    return out;
}

bool Stream::finished() const {
    const std::lock_guard lock(mutex_);
    return queue_.empty() && over();
}

std::optional<Failure> Stream::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

std::optional<engine::RequestId> Stream::id() const {
    const std::lock_guard lock(mutex_);
    return id_;
}

void Stream::accept(engine::RequestId id) {
    {
        const std::lock_guard lock(mutex_);
        id_ = id;
    }
    changed_.notify_all();
}

bool Stream::push(const engine::RequestOutput& delta) {
    bool was_empty = false, last = false;
    {
        const std::lock_guard lock(mutex_);
        was_empty = queue_.empty();
        const auto same = std::find_if(queue_.rbegin(), queue_.rend(),
                                       [&](const auto& queued) { return queued.index == delta.index; });
        if (queue_.size() >= max_queued_ && same != queue_.rend()) merge(*same, delta);
        else queue_.push_back(delta);
        if (delta.finish != engine::FinishReason::kNone) ended_ += 1;
        last = over();
    }
    changed_.notify_all();
    if (was_empty && on_ready_) on_ready_();
    return last;
}

void Stream::fail(Failure failure) {
    {
        const std::lock_guard lock(mutex_);
        if (over()) return;
        failure_ = std::move(failure);
    }
    changed_.notify_all();
    if (on_ready_) on_ready_();
}

void Stream::abort() {
    for (uint32_t i = 0; i < outputs_; ++i) {
        engine::RequestOutput last;
        last.index = i;
        last.finish = engine::FinishReason::kAbort;
        push(last);
    }
}

}  // namespace patchbay::service
