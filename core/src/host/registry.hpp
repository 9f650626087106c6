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
    // Search order: `plugin_dirs` (--plugin-dir), PATCHBAY_PLUGIN_PATH, <dir of the executable>/plugins (a build tree),
    // <prefix>/lib/patchbay/plugins. Never the current directory; a folder that others can write to is refused.
    static Result<Registry> open(const std::vector<std::filesystem::path>& plugin_dirs);

    const std::vector<Manifest>& manifests() const; // in search order; the first of a kind and name wins
    // kind: "scheduler", … ; failure names what there is: "no scheduler 'fcsf' (did you mean 'fcfs'?)".
    Result<const ComponentManifest*> find(std::string_view kind, std::string_view name) const;
    std::vector<std::string> names(std::string_view kind) const;
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
    std::vector<Manifest> manifests_;
};

}  // namespace patchbay::host
