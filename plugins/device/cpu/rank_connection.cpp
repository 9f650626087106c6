#include "rank_connection.hpp"

namespace patchbay {

void RankConnection::connect(const pb_group& group) {
    {
        const std::lock_guard lock(connecting_); // disconnect() may use it from here on
        if (communicator_) disconnected_ = false; // it was of the connection before
        communicator_ = std::make_unique<Communicator>(group);
        if (disconnected_) communicator_->abort();
    }
    communicator_->connect(group);
}

void RankConnection::disconnect() noexcept {
    const std::lock_guard lock(connecting_);
    disconnected_ = true;
    if (communicator_) communicator_->abort();
}

}  // namespace patchbay
