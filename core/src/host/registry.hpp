// Which plugins there are (from their manifests, running no code), and making components of them by name.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "host/allowed_plugins.hpp"
#include "host/component.hpp"
#include "host/identity.hpp"
#include "host/manifest.hpp"
#include "host/plugin_search.hpp"

namespace patchbay::host {

// Whether what is found after a library of an own folder that cannot be used may take its place: it may be of the name
// that is meant, and then other code would run than the one that was asked for.
enum class Unusable { kIsAFault, kIsLeftOut };

class Registry {
  public:
    // Search order: `plugin_dirs` (--plugin-dir) and PATCHBAY_PLUGIN_PATH, which are the user's own, then
    // <executable's folder>/../lib/patchbay/plugins (a build tree and an installed prefix alike), which is trusted as
    // the program is. Never the current directory. Own folders and files that others can write to are refused.
    static Result<Registry> open(const std::vector<std::filesystem::path>& plugin_dirs,
                                 Unusable unusable = Unusable::kIsAFault);

    // In search order; the first of a kind and name wins.
    const std::vector<Manifest>& manifests() const { return found_.manifests; }
    const std::vector<std::string>& remarks() const { return found_.remarks; } // folders and libraries left out
    const std::vector<std::filesystem::path>& folders() const { return found_.folders; }
    // kind: "scheduler", …; the failure says what there is: "no scheduler 'fcsf' (did you mean 'fcfs'?)", or which
    // library of an own folder, earlier in the search order, cannot be used.
    Result<const ComponentManifest*> find(std::string_view kind, std::string_view name) const;
    // The first of them, whatever comes before it; null: there is none.
    const ComponentManifest* first(std::string_view kind, std::string_view name) const;
    const Manifest* plugin_of(const ComponentManifest&) const;
    // The same, whose find() refuses what is not allowed, and with it all that makes a component.
    Registry restricted_to(AllowedPlugins) const;
    std::string disallowed(const Manifest&) const; // why it may not be loaded; empty: it may
    std::vector<std::string> names(std::string_view kind) const;
    // Why a listed plugin would not load: its library is gone, is not the one that was probed, or was built for another
    // host. Empty: it would.
    static std::string fault_of(const Manifest&);
    // The model component that serves an architecture of config.json.
    Result<std::string> model_for(std::string_view architecture) const;

    // scheduler(), sampler(), …: a component of each kind, by its name.
#define PB_MAKE(id, word, Type) Result<Type> word(const std::string& name, const Settings&, const Services&) const;
    PB_EACH_KIND(PB_MAKE)
#undef PB_MAKE

    static Identity identity(const Component&);

  private:
    Registry() = default;
    template <class Table>
    Result<Typed<Table>> make(std::string_view kind, const std::string& name, const Settings&, const Services&) const;

    FoundPlugins found_;
    std::optional<AllowedPlugins> allowed_; // none: any
};

}  // namespace patchbay::host
