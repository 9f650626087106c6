// Folders, environment variables and plugins for the tests of the plugin host.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "host/component.hpp"
#include "host/library.hpp"
#include "host/manifest.hpp"
#include "must.hpp"

namespace patchbay::host {

namespace fs = std::filesystem;

// A temporary folder that is deleted with the object.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    const fs::path& path() const { return path_; }
    fs::path operator/(const std::string& name) const { return path_ / name; }

  private:
    fs::path path_;
};

// An environment variable that is set (or, by null, unset) during the object's life.
class Variable {
  public:
    Variable(const char* name, const char* value);
    Variable(const char* name, const fs::path& value) : Variable(name, value.c_str()) {}
    ~Variable();
    Variable(const Variable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

template <class T>
std::string error_of(const Result<T>& r) {
    return r ? "" : r.error();
}

fs::path built(const std::string& plugin);  // of tests/unit/host/CMakeLists.txt
std::string bytes_of(const fs::path& file);
void write(const fs::path& file, const std::string& bytes);  // in place: an inode that is there is kept
Manifest manifest_of(const fs::path& library);               // as a probe would describe it
// Copies a built plugin to `to` and writes the manifest that vouches for it.
Manifest install(const std::string& plugin, const fs::path& to);
int32_t answer_of(const Component&);  // what a proposer of answers.c proposes

// Each test has its own folder and cache, and no plugin folders from outside.
class HostTest : public ::testing::Test {
  protected:
    Folder folder_;
    fs::path cache_ = folder_ / "cache";
    Variable cache_variable_{"PATCHBAY_CACHE", cache_};
    Variable path_variable_{"PATCHBAY_PLUGIN_PATH", nullptr};
};

}  // namespace patchbay::host
