// A folder of a test's own, gone with it. Its path is short: sockets lie in it.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace patchbay::serve::testing {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = "/tmp/pb-serve-XXXXXX";
        if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder in /tmp");
        path_ = name;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace patchbay::serve::testing
