// Whole messages over a stream socket, in both directions, without blocking: what the socket does not take is queued.
// A message is 16 bytes (magic, protocol, type, length, checksum) and its bytes. Used by hub.hpp and spoke.hpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/result.hpp"

namespace patchbay::parallel {

inline constexpr uint16_t kProtocol = 5;               // of messages; ranks with another one are refused
inline constexpr size_t kMaxMessage = 64u << 20;      // bytes
inline constexpr size_t kMaxBacklog = 256u << 20;     // bytes queued for a socket

enum class MessageType : uint16_t {
    // from ranks to rank 0
    kHello = 1,   // which rank joins, of which job, from where
    kStoreSet,    // key, value
    kStoreGet,    // number, key
    kReply,       // to a message from rank 0 to all
    kStepDone,    // number of the step
    kStepFailed,  // number of the step, a failure; the rank waits for kReconnect or kEnd
    kFailed,      // a failure: why the rank cannot continue the session
    kEnded,       // the rank has finished the session
    // from rank 0
    kRefused,     // a failure: why it may not join
    kStoreValue,  // number, then 1 and the value, or 0
    kBegin,       // a session: what to load
    kGo,          // continue with what the replies agreed on
    kStep,        // number, batch
    kSwap,        // what to do for a swap, in its turn between steps
    kReconnect,   // the latest step is given up, and the devices connect anew: the number of the connection
    kEnd,         // the session is over: why, or empty
    kQuit,
    // both ways
    kBeat,
};
inline constexpr auto kLastType = MessageType::kBeat;

inline constexpr uint64_t kMillisecond = 1'000'000; // nanoseconds

struct Message {
    MessageType type;
    std::string bytes;
};

using Socket = Descriptor;

class Connection { // one thread at a time
  public:
    explicit Connection(Socket); // made non-blocking

    int fd() const { return socket_.get(); }
    Result<> post(MessageType, std::string_view bytes = {});
    Result<> flush();                                // when the socket is writable
    bool has_backlog() const { return sent_ < out_.size(); }
    // The messages that have arrived, up to a limit for each call; fails when the other side has closed.
    Result<> receive(std::vector<Message>& arrived);
    void take_at_most(size_t bytes) { max_message_ = bytes; } // in a message; kMaxMessage at first
    void close() { socket_.reset(); }

  private:
    Result<> take_messages(std::vector<Message>&);

    Socket socket_;
    std::string out_, in_;
    size_t sent_ = 0;
    size_t max_message_ = kMaxMessage;
};

}  // namespace patchbay::parallel
