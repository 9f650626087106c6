// One connection of the HTTP server. Internal: includes Boost.Asio and Beast, so that few files do.
#pragma once
#include <memory>

#include "serve/connection_set.hpp"
#include "serve/deadline.hpp"
#include "serve/live_exchange.hpp"
#include "serve/lost_answers.hpp"
#include "serve/request_reader.hpp"
#include "serve/sender.hpp"

namespace patchbay::serve {

namespace asio = boost::asio;

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Protocol = StreamProtocol;
    using Socket = StreamSocket;

    Connection(Socket, std::shared_ptr<ConnectionSet>);
    ~Connection();
    void start();        // any thread, once
    void close_later();  // any thread: now
    bool overdue() const { return deadline_.is_over(); }
    void close_if_idle(); // any thread

  private:
    void read();
    void on_read(const boost::system::error_code&, size_t bytes);
    void parse();
    void begin_exchange(ParsedRequest);
    void refuse(const RequestReader::Rejection&);
    void on_sending();
    void on_sent();
    void end_exchange(bool keep_alive);
    void peer_gone();
    void finish_closing();
    void close();
    void note_answer(); // its state, for last words

    Socket socket_;
    LostAnswer answer_{socket_.native_handle()};
    const std::shared_ptr<ConnectionSet> set_;
    RequestReader requests_;
    Sender sender_;
    std::shared_ptr<LiveExchange> exchange_; // null: no request is being answered
    Deadline deadline_;
    bool reading_ = false, eof_ = false;
    bool keep_alive_ = true; // after what was answered last
};

}  // namespace patchbay::serve
