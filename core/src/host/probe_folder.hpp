// The folder of one probe, for the copies that it loads and what the library leaves among temporary files. It goes with
// the object; if this process is killed, the supervisor takes it away; if both are, the next probe does.
#pragma once
#include <filesystem>
#include <memory>

#include "base/result.hpp"

namespace patchbay::host {

class ProbeFolder {
  public:
    static constexpr const char* kPrefix = "patchbay-probe-";

    static Result<std::unique_ptr<ProbeFolder>> make();
    ~ProbeFolder();
    ProbeFolder(const ProbeFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    ProbeFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
    std::filesystem::path path_;
    int lock_; // an open descriptor of the folder, locked while the probe lasts
};

}  // namespace patchbay::host
