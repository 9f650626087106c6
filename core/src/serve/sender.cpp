#include "serve/sender.hpp"

#include <boost/asio/buffer.hpp>
#include <utility>

#include "serve/lost_answers.hpp"

namespace patchbay::serve {

void Sender::send(std::string_view bytes) {
    if (!socket_.is_open()) return;
    pending_ += bytes;
    if (!writing_) write_more();
}

void Sender::write_more() {
    const bool whole = sent_ == sending_.size();
    writing_ = true;
    owner_.on_sending();
    if (whole && lost_answers_are_sent()) { // the process ends, and its last words may follow what was sent
        writing_ = false;
        return owner_.on_sending();
    }
    if (whole) {
        sending_.clear();
        sent_ = 0;
        std::swap(sending_, pending_);
    }
    socket_.async_write_some(boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [this, held = owner_.hold()](const boost::system::error_code& error, size_t bytes) {
                                 on_written(error, bytes);
                             });
}

void Sender::on_written(const boost::system::error_code& error, size_t bytes) {
    writing_ = false;
    if (!socket_.is_open()) return;
    if (error) return owner_.on_failed();
    sent_ += bytes;
    if (sent_ < sending_.size() || !pending_.empty()) return write_more();
    owner_.on_sent();
}

}  // namespace patchbay::serve
