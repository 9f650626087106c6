// Which plugins there are (from their manifests, running no code), and making components of them by name.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "host/manifest.hpp"

namespace patchbay::host {

struct Identity { // recorded with every result
    std::string kind, name, version, sha256, build, path;
};

class Registry {
  public:
    // Search order: `plugin_dirs` (--plugin-dir), PATCHBAY_PLUGIN_PATH, <executable's folder>/../lib/patchbay/plugins
    // (a build tree and an installed prefix alike). Never the current directory; a folder that others can write to is
    // refused.
    static Result<Registry> open(const std::vector<std::filesystem::path>& plugin_dirs);

    // In search order; the first of a kind and name wins.
    const std::vector<Manifest>& manifests() const { return manifests_; }
    const std::vector<std::string>& remarks() const { return remarks_; } // folders and libraries left out
    const std::vector<std::filesystem::path>& folders() const { return folders_; }
    // kind: "scheduler", …; the failure says what there is: "no scheduler 'fcsf' (did you mean 'fcfs'?)".
    Result<const ComponentManifest*> find(std::string_view kind, std::string_view name) const;
    const Manifest* plugin_of(const ComponentManifest&) const;
    std::vector<std::string> names(std::string_view kind) const;
    // Why a listed plugin would not load: its library is gone, is not the one that was probed, or was built for another
    // host. Empty: it would.
    static std::string fault_of(const Manifest&);
    // The model component that serves an architecture of config.json.
    Result<std::string> model_for(std::string_view architecture) const;

    Result<Scheduler> scheduler(const std::string& name, const Settings&, const Services&) const;
    Result<Sampler> sampler(const std::string& name, const Settings&, const Services&) const;
    Result<Proposer> proposer(const std::string& name, const Settings&, const Services&) const;
    Result<Attention> attention(const std::string& name, const Settings&, const Services&) const;
    Result<Model> model(const std::string& name, const Settings&, const Services&) const;
    Result<Device> device(const std::string& name, const Settings&, const Services&) const;

    static Identity identity(const Component&);

  private:
    Registry() = default;
    void scan(const std::filesystem::path& folder);
    template <class Table>
    Result<Typed<Table>> make(std::string_view kind, const std::string& name, const Settings&, const Services&) const;

    std::vector<std::filesystem::path> folders_;
    std::vector<Manifest> manifests_;
    std::vector<std::string> remarks_;
};

}  // namespace patchbay::host
