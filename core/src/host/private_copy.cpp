#include "host/private_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/refusals.hpp"
#include "base/sha256.hpp"
#include "base/temporary_folder.hpp"
#include "host/probe_folder.hpp"

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kLargestLibrary = 1ull << 30;  // bytes
constexpr size_t kHashDigits = 32;                // in a copy's name
using FileClock = fs::file_time_type::clock;
constexpr auto kUnusedFor = std::chrono::hours(24 * 30);  // after which a copy is removed
constexpr auto kNotedEach = std::chrono::hours(24);       // a copy's use, as the time of its file

Result<std::string> read_file(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found) return not_found("there is no such file");
    if (error) return fail("cannot be read: " + error.message());
    if (!fs::is_regular_file(status)) return invalid("it is not a regular file");  // reading a pipe would wait for ever
    const uint64_t size = fs::file_size(file, error);
    if (error) return fail("cannot be read: " + error.message());
    if (size > kLargestLibrary) return invalid("larger than 1 GiB");
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    std::string bytes(size, '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    if (in) return bytes;
    return fail(errno ? std::string("cannot be read: ") + std::strerror(errno) : "it changed while it was read");
}

Result<fs::path> cache_folder() {
    const auto env = [](const char* name) {
        const char* v = std::getenv(name);
        return fs::path(v ? v : "");
    };
    fs::path folder = env("PATCHBAY_CACHE");
    if (folder.empty() && !env("XDG_CACHE_HOME").empty()) folder = env("XDG_CACHE_HOME") / "patchbay";
    if (folder.empty() && !env("HOME").empty()) folder = env("HOME") / ".cache" / "patchbay";
    std::error_code error;
    if (folder.empty()) {
        PB_TRY(const fs::path temporary, temporary_folder());
        folder = temporary / ("patchbay-" + std::to_string(getuid()));
    }
    const bool made = fs::create_directories(folder, error);
    if (made) chmod(folder.c_str(), 0700);  // what was there before keeps its mode
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0)
        return fail("cannot make the cache folder " + folder.string() + ": " + std::strerror(errno));
    if (info.st_uid != geteuid())
        return invalid("the cache folder " + folder.string() + " belongs to another user (set PATCHBAY_CACHE)");
    if (info.st_mode & 022)
        return invalid("the cache folder " + folder.string() + " can be written to by others (chmod go-w " +
                       folder.string() + ", or set PATCHBAY_CACHE to a folder of your own)");
    return folder;
}

Result<> write_new(const fs::path& file, const std::string& bytes) {  // atomically: a reader sees all of it or nothing
    std::string name = file.string() + ".XXXXXX";
    const int fd = mkstemp(name.data());
    if (fd < 0) return fail("cannot write to " + file.parent_path().string() + ": " + std::strerror(errno));
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += static_cast<size_t>(n);
    }
    const int why = errno;
    close(fd);
    if (done == bytes.size() && rename(name.c_str(), file.c_str()) == 0) return {};
    unlink(name.c_str());
    return fail("cannot write " + file.string() + ": " + std::strerror(why));
}

void note_use(const fs::path& copy) {
    std::error_code ignored;
    const auto now = FileClock::now();
    if (fs::last_write_time(copy, ignored) < now - kNotedEach) fs::last_write_time(copy, now, ignored);
}

// Whether it is named as copies are, or as what write_new() is about to call one.
bool is_ours(std::string_view name) {
    const size_t end = name.rfind(".so");
    if (end == name.npos || end <= kHashDigits || name[end - kHashDigits - 1] != '-') return false;
    const std::string_view hash = name.substr(end - kHashDigits, kHashDigits), rest = name.substr(end + 3);
    return hash.find_first_not_of("0123456789abcdef") == hash.npos &&
           (rest.empty() || (rest.size() == 7 && rest[0] == '.'));
}

// Every build leaves copies that go unused, and a write that was broken off leaves half of one. A copy that
// is mapped somewhere stays so.
void remove_unused(const fs::path& folder) {
    std::error_code ignored;
    const auto oldest = FileClock::now() - kUnusedFor;
    for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
        if (!is_ours(at->path().filename().string()) || !at->is_regular_file(ignored)) continue;
        const auto used = at->last_write_time(ignored);
        if (!ignored && used < oldest) fs::remove(at->path(), ignored);
    }
}

}  // namespace

Result<std::string> file_sha256(const fs::path& file) {
    PB_TRY(const std::string bytes, read_file(file));
    return sha256_hex(bytes);
}

std::string fault_of_mount(const fs::path& folder, unsigned long flags, const char* variable) {
    if (!(flags & ST_NOEXEC)) return "";
    return "the folder " + folder.string() + " of private copies is mounted noexec (set " + variable +
           " to a folder where it is not)";
}

std::string mount_fault(const fs::path& folder) {
    const bool of_probe = folder.filename().string().starts_with(ProbeFolder::kPrefix);
    struct statvfs info {};
    if (statvfs(folder.c_str(), &info) != 0) return "";
    return fault_of_mount(folder, info.f_flag, of_probe ? "TMPDIR" : "PATCHBAY_CACHE");
}

Result<PrivateCopy> private_copy(const fs::path& file) {
    PB_TRY(const std::string bytes, read_file(file));
    PB_TRY(const fs::path folder, cache_folder());
    PrivateCopy copy;
    copy.sha256 = sha256_hex(bytes);
    copy.path = folder / (file.stem().string() + "-" + copy.sha256.substr(0, kHashDigits) + ".so");
    std::error_code error;
    const bool there = fs::is_regular_file(copy.path, error) && fs::file_size(copy.path, error) == bytes.size();
    if (const auto old = there ? read_file(copy.path) : fail(""); old && *old == bytes) {
        note_use(copy.path);
        return copy;
    }
    PB_CHECK(write_new(copy.path, bytes));
    remove_unused(folder);
    return copy;
}

}  // namespace patchbay::host
