// One loaded shared object: always a private copy named by its content, so that rebuilding the original neither
// changes code under our feet nor is mistaken for what is loaded already. The only place that knows Boost.DLL.
#pragma once
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "host/contract.hpp"
#include "host/manifest.hpp"
#include "patchbay/abi.h"

namespace patchbay::host {

// A failed named check: "abi.version: built for ABI 2.0, this host speaks 1.0: …".
struct LoadFault {
    std::string check, reason;
};
// How the names of those begin that say nothing of the library: a disk is full, a folder does not let code run.
inline constexpr std::string_view kMachineFault = "machine.";

class Library {
  public:
    // `expected_sha256`: refused unless the bytes hash to it; empty: any. Reads, hashes, copies, maps, checks.
    static Result<std::shared_ptr<Library>> open(const std::filesystem::path& path, const std::string& expected_sha256,
                                                 LoadFault* fault = nullptr);
    ~Library();

    const pb_plugin& plugin() const { return *plugin_; }
    const std::deque<OwnComponent>& components() const { return components_; }
    const pb_component* find(std::string_view kind, std::string_view name) const; // kind: "scheduler"
    const std::string& sha256() const { return sha256_; }
    const std::filesystem::path& path() const { return path_; } // of the original

  private:
    struct Handle;
    Library() = default;
    std::unique_ptr<Handle> handle_;
    const pb_plugin* plugin_ = nullptr;
    std::deque<OwnComponent> components_;
    std::filesystem::path path_;
    std::string sha256_;
};

std::string kind_word(std::string_view kind_id);         // "patchbay.scheduler/1" → "scheduler"
ComponentManifest describe(const pb_component&);         // its table, owned
std::string contract_fault(const Manifest&);             // of what it was built for, against this host; empty: it fits
std::optional<LoadFault> check_component(const pb_component*); // completeness, kind, revisions, schema

}  // namespace patchbay::host
