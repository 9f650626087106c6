// Files that appear in folders, by inotify: each once it is whole, that is, closed after writing or moved there. Used
// by Admin for plugins.
#pragma once
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
    // on_file: on a thread of its own, one file after another. The failure: what the kernel refuses to watch, and why.
    static Result<std::unique_ptr<FolderWatch>> start(const std::vector<std::filesystem::path>& folders,
                                                      std::function<void(const std::filesystem::path&)> on_file);
    void stop();    // [any thread] no other file after the one that it is about; does not wait for that
    ~FolderWatch(); // stops, and waits
    FolderWatch(const FolderWatch&) = delete;
    FolderWatch& operator=(const FolderWatch&) = delete;

  private:
    explicit FolderWatch(std::function<void(const std::filesystem::path&)> on_file) : on_file_(std::move(on_file)) {}
    void loop();
    void read();
    bool stops() const;

    const std::function<void(const std::filesystem::path&)> on_file_;
    std::map<int, std::filesystem::path> folders_; // by the watch's number
    int inotify_ = -1, stop_ = -1;                 // stop_: an event's descriptor
    std::thread thread_;
};

}  // namespace patchbay::serve
