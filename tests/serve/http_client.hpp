// A small HTTP client for tests: blocking, one connection, with all that a rude client may do.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::serve::testing {

struct Answer {
    int status = 0;                             // 0: the connection ended before one came
    std::map<std::string, std::string> headers; // names in lower case
    std::string body;                           // chunks joined
};

inline constexpr int kSmallBuffer = 16'384; // bytes

class HttpClient {
  public:
    // 0: the system's buffer. One under kSmallBuffer makes Linux send a full buffer's rest in pieces, with a pause
    // between them that grows while the client does not read.
    explicit HttpClient(uint16_t port, int receive_buffer_bytes = 0);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    void send(std::string_view bytes); // whole; what the server does not take any more is dropped
    void post(const std::string& path, const std::string& body, const std::string& headers = {});
    void get(const std::string& path, const std::string& headers = {});
    Answer read_answer();
    Answer read_head();                    // of a stream
    std::optional<std::string>
    read_event();                          // after read_head(): of the stream, without "data: "; nothing: it has ended
    std::string read_rest();               // all until the server closes
    void half_close();                     // nothing more is sent
    void reset();                          // closes at once

  private:
    bool fill(); // reads more; false: there is no more. Throws where nothing comes for long
    std::optional<std::string> line();
    std::optional<std::string> chunk(); // empty: the last one

    int fd_;
    std::string buffer_, events_;
    bool chunked_ = false, stream_ended_ = false;
};

// One request on a connection of its own.
Answer post(uint16_t port, const std::string& path, const std::string& body, const std::string& headers = {});
Answer get(uint16_t port, const std::string& path, const std::string& headers = {});

}  // namespace patchbay::serve::testing
