// Where ranks on several hosts find each other: TCP sockets to and from "host:port".
#pragma once
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "parallel/connection.hpp"

namespace patchbay::parallel {

struct Endpoint {
    std::string host; // a name or an address; for a listener, one of this machine
    uint16_t port = 0;
};
Result<Endpoint> parse_endpoint(const std::string& text); // "node1:29511", "[fe80::1]:29511"
std::string text_of(const Endpoint&);

Result<Socket> listen_at(const Endpoint&);
// Retries until a process listens there, or the time is up.
Result<Socket> connect_to(const Endpoint&, uint64_t timeout_ns);
void send_at_once(int socket); // small messages, too; nothing for one that is not TCP
std::string local_address(const Socket&); // "10.0.0.2"; "127.0.0.1" for a socket that is not TCP
std::string host_name();
std::string seconds(uint64_t ns); // "1.5 s"

}  // namespace patchbay::parallel
