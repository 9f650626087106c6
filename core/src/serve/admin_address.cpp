#include "serve/admin_address.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/json_file.hpp"
#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "serve/socket_file.hpp"

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxTokenFile = 4096;
constexpr size_t kMinToken = 16;

Result<std::string> read_token(const fs::path& file) {
    const std::string where = "--admin-token-file " + file.string();
    struct stat info {};
    if (stat(file.c_str(), &info) != 0)
        return fail(code_of_open(errno), where + ": " + std::strerror(errno));
    if (info.st_mode & 077)
        return invalid(where + ": others can read or write it (chmod 600 " + file.string() + ")");
    auto text = read_whole_file(file, kMaxTokenFile);
    if (!text) return prefixed(where, text.failure());
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    const bool plain = std::all_of(text->begin(), text->end(), [](char c) { return c > ' ' && c < 0x7F; });
    if (text->size() < kMinToken || !plain)
        return invalid(where + ": expected a line of at least " + std::to_string(kMinToken) +
                       " printable characters without spaces, got " + std::to_string(text->size()) +
                       (plain ? "" : ", others among them"));
    return text;
}

// Empty: it is there, and this user's alone.
std::string fault_of(const fs::path& folder) {
    struct stat info {};
    if (lstat(folder.c_str(), &info) != 0) return std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return "it is not a folder";
    if (info.st_uid != geteuid()) return "it belongs to another user";
    if (info.st_mode & 077) return "others can use it (chmod 700 " + folder.string() + ")";
    return "";
}

Result<> check_folder(const fs::path& folder) {
    const std::string fault = fault_of(folder);
    if (fault.empty()) return {};
    return invalid("the folder of admin addresses, " + folder.string() + ": " + fault);
}

}  // namespace

std::string AdminAddress::text() const {
    if (!socket.empty()) return socket;
    const bool v6 = host.find(':') != std::string::npos;
    return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<AdminAddress> host_and_port(const std::string& text) {
    const size_t colon = text.rfind(':');
    if (colon == text.npos || colon == 0) return std::nullopt;
    const auto port = parse_number<uint16_t>(std::string_view(text).substr(colon + 1));
    if (!port) return std::nullopt;
    std::string host = text.substr(0, colon);
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    return AdminAddress{.socket = "", .host = std::move(host), .port = *port, .token = ""};
}

Result<AdminAddress> admin_address(const std::string& text, const std::string& token_file) {
    if (text.find('/') != std::string::npos) {
        if (!token_file.empty())
            return invalid("--admin-token-file goes with --admin HOST:PORT; a socket is guarded by its permissions");
        return AdminAddress{.socket = text, .host = "", .port = 0, .token = ""};
    }
    auto out = host_and_port(text);
    if (!out)
        return invalid("--admin: got '" + text + "', expected a path with a '/', such as ./admin.sock, or HOST:PORT");
    if (token_file.empty())
        return invalid("--admin " + text + " needs --admin-token-file FILE: TCP is open to all users");
    PB_TRY(out->token, read_token(token_file));
    return *std::move(out);
}

fs::path admin_folder() {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime) return fs::path(runtime) / "patchbay";
    return "/tmp/patchbay-" + std::to_string(geteuid());
}

Result<AdminAddress> default_admin_address() {
    const fs::path folder = admin_folder();
    mkdir(folder.c_str(), 0700); // what is there, or went wrong, is looked at next
    PB_CHECK(check_folder(folder));
    remove_dead_sockets(folder);
    AdminAddress out;
    out.socket = folder / (std::to_string(getpid()) + ".sock");
    return out;
}

Result<std::vector<fs::path>> live_admin_sockets() {
    const fs::path folder = admin_folder();
    std::error_code error;
    if (fs::symlink_status(folder, error).type() == fs::file_type::not_found) return std::vector<fs::path>{};
    PB_CHECK(check_folder(folder));
    std::vector<fs::path> out;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        if (at->path().extension() == ".sock" && is_live_socket(at->path())) out.push_back(at->path());
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace patchbay::serve
