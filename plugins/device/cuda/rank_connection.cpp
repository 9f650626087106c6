#include "rank_connection.hpp"

#include <utility>

#include "patchbay/plugin.hpp"

namespace patchbay {

void RankConnection::connect(const pb_group& group) {
    {
        std::unique_ptr<Ranks> gone; // without the lock: it waits for NCCL, and disconnect() must not
        const std::lock_guard lock(mutex_);
        if (ranks_) disconnected_ = false; // it was of the connection before
        gone = std::move(ranks_);
    }
    auto ranks = std::make_unique<Ranks>(group, gpu_.stream(), disconnected_);
    const std::lock_guard lock(mutex_);
    if (disconnected_) throw Error(PB_FAILED, "disconnected while it connected");
    ranks_ = std::move(ranks);
}

void RankConnection::disconnect() noexcept {
    disconnected_ = true; // who connects gives up
    const std::lock_guard lock(mutex_);
    if (ranks_) ranks_->abort();
}

void RankConnection::close() {
    std::unique_ptr<Ranks> gone;
    const std::lock_guard lock(mutex_);
    gone = std::move(ranks_);
}

}  // namespace patchbay
