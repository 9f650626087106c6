#include "serve/http_connection.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/cors.hpp"
#include "serve/error_reply.hpp"
#include "serve/http_answer.hpp"

namespace patchbay::serve {

constexpr uint32_t kLingerSeconds = 2; // for a client that has its last answer, or came while the server closes

Connection::Connection(Socket socket, std::shared_ptr<ConnectionSet> set)
    : socket_(std::move(socket)), set_(std::move(set)),
      requests_(set_->options.max_body_bytes, set_->options.max_header_bytes, set_->options.takes),
      sender_(socket_, {.hold = [this] { return shared_from_this(); },
                        .on_sending = [this] { on_sending(); },
                        .on_sent = [this] { on_sent(); },
                        .on_failed = [this] { close(); }}),
      deadline_(set_->tick) {}

Connection::~Connection() {
    const std::lock_guard lock(set_->mutex);
    set_->open.erase(this);
    set_->closed.notify_all();
}

void Connection::start() {
    {
        const std::lock_guard lock(set_->mutex);
        set_->open.insert(this);
    }
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
        boost::system::error_code ignored;
        self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored); // which Unix sockets have not
        if (self->set_->stopped) return self->close();
        self->deadline_.set(self->set_->closing ? kLingerSeconds : self->set_->options.keep_alive_seconds);
        self->read();
    });
}

void Connection::close_later() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::close_if_idle() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (!self->exchange_ && !self->requests_.is_partial() && !self->sender_.is_sending()) self->close();
    });
}

void Connection::read() {
    if (reading_ || eof_ || !socket_.is_open()) return;
    if ((exchange_ || sender_.is_sending()) && requests_.is_full()) return; // read on when it is answered
    reading_ = true;
    socket_.async_read_some(requests_.prepare(),
                            [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                                self->on_read(error, bytes);
                            });
}

void Connection::on_read(const boost::system::error_code& error, size_t bytes) {
    reading_ = false;
    if (!socket_.is_open()) return;
    if (error) return peer_gone();
    requests_.commit(bytes);
    parse();
    read();
}

// The client has closed its side. It looks like one that has closed both until something is sent, so it counts
// as gone: nothing goes on being computed for it. Answers that are ready are still sent.
void Connection::peer_gone() {
    eof_ = true;
    const bool sending = sender_.is_sending(), more = requests_.buffered() > 0;
    if (exchange_ || requests_.is_discarding()) return close();
    if (!sending && !requests_.is_partial() && !more) return close();
    keep_alive_ = keep_alive_ && more;
    if (!sending && more && requests_.is_partial()) close(); // half a request
}

void Connection::parse() {
    const bool takes_next = requests_.is_partial() || !sender_.is_sending(); // the answers before it are taken
    if (!exchange_ && takes_next && socket_.is_open() && requests_.buffered() > 0) {
        if (!requests_.is_partial()) deadline_.set(set_->options.read_seconds);
        auto parsed = requests_.parse();
        if (parsed.expects_continue) sender_.send("HTTP/1.1 100 Continue\r\n\r\n");
        if (parsed.rejection) return refuse(*parsed.rejection);
        if (parsed.request) return begin_exchange(*std::move(parsed.request));
    }
    if (eof_ && !exchange_ && !sender_.is_sending()) close();
}

void Connection::begin_exchange(ParsedRequest request) {
    if (!sender_.is_sending()) deadline_.set(0);
    const auto exchange = std::make_shared<LiveExchange>(
        std::shared_ptr<Sender>(shared_from_this(), &sender_), set_, std::move(request),
        [this](bool keep_alive) { end_exchange(keep_alive); });
    exchange_ = exchange;
    if (set_->options.if_lost) answer_.say(set_->options.if_lost(exchange->request()));
    note_answer();
    if (auto preflight = cors_preflight(set_->options.allowed_origins, exchange->request()))
        return exchange->respond(*std::move(preflight));
    exchange->run([&] { set_->handler(exchange); });
}

void Connection::refuse(const RequestReader::Rejection& rejection) {
    const bool too_large = rejection.status == 413 || rejection.status == 431, unsupported = rejection.status == 501;
    if (set_->options.on_rejection) set_->options.on_rejection(too_large ? "too_large" : "malformed");
    HttpResponse response =
        error_reply(fail(unsupported ? StatusCode::kUnsupported : StatusCode::kInvalid, rejection.text));
    response.status = rejection.status;
    for (auto& header : cors_headers(set_->options.allowed_origins, rejection.head))
        response.headers.push_back(std::move(header));
    keep_alive_ = false;
    sender_.send(whole_answer(response, Ending::kClose));
}

void Connection::note_answer() {
    if (!exchange_) answer_.set(AnswerState::kNone);
    else answer_.set(sender_.is_sending() ? AnswerState::kSending : exchange_->answer_state());
}

void Connection::on_sending() {
    note_answer();
    deadline_.set(set_->options.write_seconds);
}

void Connection::on_sent() {
    note_answer();
    deadline_.set(0);
    if (const auto exchange = exchange_) return exchange->sent();
    const bool begun = requests_.is_partial();
    if (!keep_alive_ || (set_->closing && !begun)) return finish_closing();
    deadline_.set(begun ? set_->options.read_seconds : set_->options.keep_alive_seconds);
    parse();
    read();
}

void Connection::end_exchange(bool keep_alive) {
    keep_alive_ = keep_alive;
    exchange_.reset();
    note_answer();
    if (!keep_alive_ || set_->closing) {
        if (!sender_.is_sending()) finish_closing();
        return;
    }
    if (!sender_.is_sending()) deadline_.set(set_->options.keep_alive_seconds);
    asio::post(socket_.get_executor(), [self = shared_from_this()] { // not in the handler's frame
        self->parse();
        self->read();
    });
}

// Says that nothing more comes, and reads on until the client has closed, too: a reset would take the answer away.
void Connection::finish_closing() {
    if (eof_) return close();
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    requests_.discard();
    deadline_.set(kLingerSeconds);
    read();
}

void Connection::close() {
    if (!socket_.is_open()) return;
    if (const auto exchange = exchange_) exchange->gone();
    exchange_.reset();
    note_answer(); // before the descriptor is another's
    deadline_.set(0);
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace patchbay::serve
