// Where an engine takes orders while it runs: a Unix socket for its user alone, or TCP for those who have a token. Used
// by Admin, which listens there, and by the commands that ask it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::serve {

struct AdminAddress {
    std::string socket; // a path; empty: TCP
    std::string host;
    uint16_t port = 0;  // to listen on: 0 is any free one
    std::string token;  // of TCP

    std::string text() const; // a path, or a URL
};

// "HOST:PORT", the host also in brackets; none: it is something else.
std::optional<AdminAddress> host_and_port(const std::string& text);
// PATH, which has a '/', or HOST:PORT with the token that the file holds. Checks the file's permissions.
Result<AdminAddress> admin_address(const std::string& text, const std::string& token_file);

// $XDG_RUNTIME_DIR/patchbay, else /tmp/patchbay-UID. It may not be there.
std::filesystem::path admin_folder();
// PID.sock in the folder, which is made, with 0700, where it is not there; refused where others can use it. Sockets
// that ended processes left there are removed.
Result<AdminAddress> default_admin_address();
// Sockets in the folder on which a process listens, by name. Refused where the folder is not this user's.
Result<std::vector<std::filesystem::path>> live_admin_sockets();

}  // namespace patchbay::serve
