#include "host/private_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/sha256.hpp"

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kLargestLibrary = 1ull << 30;  // bytes

Result<std::string> read_file(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found) return fail("there is no such file");
    if (error) return fail("cannot be read: " + error.message());
    if (!fs::is_regular_file(status)) return fail("it is not a regular file");  // reading a pipe would wait for ever
    const uint64_t size = fs::file_size(file, error);
    if (error) return fail("cannot be read: " + error.message());
    if (size > kLargestLibrary) return fail("larger than 1 GiB");
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
    if (folder.empty()) folder = fs::temp_directory_path() / ("patchbay-" + std::to_string(getuid()));
    std::error_code error;
    const bool made = fs::create_directories(folder, error);
    if (made) chmod(folder.c_str(), 0700);  // what was there before keeps its mode
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0)
        return fail("cannot make the cache folder " + folder.string() + ": " + std::strerror(errno));
    if (info.st_uid != geteuid())
        return fail("the cache folder " + folder.string() + " belongs to another user (set PATCHBAY_CACHE)");
    if (info.st_mode & 022)
        return fail("the cache folder " + folder.string() + " can be written to by others (chmod go-w " +
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

}  // namespace

Result<std::string> file_sha256(const fs::path& file) {
    PB_TRY(const std::string bytes, read_file(file));
    return sha256_hex(bytes);
}

Result<PrivateCopy> private_copy(const fs::path& file) {
    PB_TRY(const std::string bytes, read_file(file));
    PB_TRY(const fs::path folder, cache_folder());
    PrivateCopy copy;
    copy.sha256 = sha256_hex(bytes);
    copy.path = folder / (file.stem().string() + "-" + copy.sha256.substr(0, 32) + ".so");
    std::error_code error;
    const bool there = fs::is_regular_file(copy.path, error) && fs::file_size(copy.path, error) == bytes.size();
    if (there) {
        PB_TRY(const std::string old, read_file(copy.path));
        if (old == bytes) return copy;
    }
    PB_CHECK(write_new(copy.path, bytes));
    return copy;
}

}  // namespace patchbay::host
