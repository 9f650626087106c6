#include "serve/live_exchange.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/printable.hpp"
#include "serve/cors.hpp"
#include "serve/error_reply.hpp"

namespace patchbay::serve {

LiveExchange::LiveExchange(std::shared_ptr<Sender> sender, std::shared_ptr<ConnectionSet> set, ParsedRequest parsed,
                           std::function<void(bool keep_alive)> on_end)
    : sender_(std::move(sender)), set_(std::move(set)), parsed_(std::move(parsed)), on_end_(std::move(on_end)) {
    set_->exchanges += 1;
}

LiveExchange::~LiveExchange() { set_->exchanges -= 1; }

void LiveExchange::respond(HttpResponse response) {
    boost::asio::dispatch(sender_->executor(), [self = shared_from_this(), response = std::move(response)]() mutable {
        self->respond_here(std::move(response));
    });
}

void LiveExchange::respond_here(HttpResponse response) {
    if (!live() || streaming_) return;
    parsed_.keep_alive = parsed_.keep_alive && !set_->closing;
    const Ending ending = prepare(response);
    sender_->send(whole_answer(response, ending, parsed_.request.method == "HEAD"));
    end();
}

void LiveExchange::begin_stream(HttpResponse head) {
    if (!live()) return;
    streaming_ = true;
    parsed_.keep_alive = parsed_.keep_alive && parsed_.http_1_1 && !set_->closing;
    if (parsed_.http_1_1) head.headers.emplace_back("Transfer-Encoding", "chunked");
    const Ending ending = prepare(head);
    sender_->send(answer_head(head, ending) + "\r\n\r\n");
}

void LiveExchange::write(std::string_view part) {
    if (!live() || !streaming_ || part.empty()) return;
    if (parsed_.http_1_1) sender_->send(chunk_of(part));
    else sender_->send(part);
}

void LiveExchange::end_stream() {
    if (!live() || !streaming_) return;
    if (parsed_.http_1_1) sender_->send(kLastChunk);
    end();
}

Ending LiveExchange::prepare(HttpResponse& head) {
    for (auto& header : cors_headers(set_->options.allowed_origins, parsed_.request))
        head.headers.push_back(std::move(header));
    if (!parsed_.keep_alive) return Ending::kClose;
    return parsed_.http_1_1 ? Ending::kKeepAlive : Ending::kSaidKeepAlive;
}

void LiveExchange::set_callbacks(std::function<void()> on_sent, std::function<void()> gone) {
    if (!live()) return gone ? gone() : void();
    on_sent_ = std::move(on_sent);
    gone_ = std::move(gone);
}

void LiveExchange::run(const std::function<void()>& f) {
    try {
        f();
    } catch (const std::exception& error) {
        spdlog::error("a request to {} failed: {}", printable(parsed_.request.path), error.what());
        boost::asio::dispatch(sender_->executor(), [self = shared_from_this()] { self->break_off(); });
    }
}

// The client of a stream sees that it is not whole: its last chunk is missing.
void LiveExchange::break_off() {
    if (!live()) return;
    if (!streaming_)
        return respond_here(error_reply(fail(StatusCode::kInternal, "the server failed to answer this request")));
    parsed_.keep_alive = false;
    const auto cancel = std::exchange(gone_, nullptr);
    end();
    if (cancel) cancel();
}

void LiveExchange::post(std::function<void()> f) {
    boost::asio::post(sender_->executor(), [self = shared_from_this(), f = std::move(f)] { self->run(f); });
}

void LiveExchange::offload(std::function<void()> f) {
    boost::asio::post(set_->workers, [self = shared_from_this(), f = std::move(f)] {
        if (!self->ended_) self->run(f);
    });
}

AnswerState LiveExchange::answer_state() const {
    if (!streaming_) return ended_ ? AnswerState::kNone : AnswerState::kAwaited;
    return parsed_.http_1_1 && !ended_ ? AnswerState::kStream : AnswerState::kNone;
}

void LiveExchange::sent() {
    if (const auto f = on_sent_) run(f);
}

void LiveExchange::gone() {
    const auto f = std::exchange(gone_, nullptr);
    ended_ = true;
    on_sent_ = nullptr;
    if (f) f();
}

void LiveExchange::end() {
    const auto self = shared_from_this(); // the callbacks may hold the last references
    ended_ = true;
    on_sent_ = nullptr;
    gone_ = nullptr;
    on_end_(parsed_.keep_alive);
}

}  // namespace patchbay::serve
