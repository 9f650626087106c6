// Files that appear in folders, by inotify: each once it is whole, that is, closed after writing or moved there. A
// folder that is removed and made again is watched again, and what it holds then appears, too, even while it is still
// being written; such a file appears once more when it is closed. Used by Admin for plugins.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace patchbay::serve {

class FolderWatch {
  public:
    // stop: a descriptor that can be read once the watch is to stop, for what takes long.
    using OnFile = std::function<void(const std::filesystem::path&, int stop)>;

    // on_file: on a thread of its own, one file after another. The failure: what the kernel refuses to watch, and why.
    static Result<std::unique_ptr<FolderWatch>> start(const std::vector<std::filesystem::path>& folders,
                                                      OnFile on_file);
    void stop();    // [any thread] no other file after the one that it is about; does not wait for that
    ~FolderWatch(); // stops, and waits
    FolderWatch(const FolderWatch&) = delete;
    FolderWatch& operator=(const FolderWatch&) = delete;

  private:
    struct Watched {
        std::filesystem::path folder;
        uid_t owner = 0;
        mode_t mode = 0;
    };
    explicit FolderWatch(OnFile on_file) : on_file_(std::move(on_file)) {}
    int add(const std::filesystem::path&) const; // the watch's number; -1: errno says why there is none
    void loop();
    void read();
    void lose(std::map<int, Watched>::iterator);
    void watch_again(); // those of lost_ that are there
    bool stops() const;

    const OnFile on_file_;
    std::map<int, Watched> watched_; // by the watch's number
    std::vector<Watched> lost_;      // folders that are gone
    int inotify_ = -1, stop_ = -1;   // stop_: an event's descriptor
    std::thread thread_;
};

}  // namespace patchbay::serve
