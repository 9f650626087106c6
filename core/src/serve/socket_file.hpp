// The file of a Unix socket that a server listens on: for its user alone, and gone with the server. What a process
// left that was killed is replaced; the socket of one that lives is not. Used by HttpServer.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace patchbay::serve {

inline constexpr uint64_t kMaxLockWaitSeconds = 5;

// Whether a process listens there.
bool is_live_socket(const std::filesystem::path&);
// Removes the *.sock of a folder on which no process listens any more.
void remove_dead_sockets(const std::filesystem::path& folder);
// What addresses of Unix sockets hold, with their end.
inline constexpr size_t kMaxSocketPath = 108;

class SocketFile {
  public:
    // `bind` makes the file, `listen` lets clients in: between them it gets its permissions, 0600. One process at a
    // time does this in a folder, so none takes another's new socket for one that is left over.
    // Where another one has locked the folder for kMaxLockWaitSeconds, it is refused.
    static Result<std::unique_ptr<SocketFile>> make(const std::filesystem::path&, const std::function<Result<>()>& bind,
                                                    const std::function<Result<>()>& listen, Clock&& = RealClock());
    ~SocketFile(); // removes the file, if it is the one that was made

  private:
    SocketFile(std::filesystem::path, dev_t, ino_t);
    const std::filesystem::path path_;
    const dev_t device_;
    const ino_t inode_;
};

}  // namespace patchbay::serve
