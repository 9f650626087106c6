// Which plugins there are (from their manifests, running no code), and making components of them by name.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "host/allowed_plugins.hpp"
#include "host/component.hpp"
#include "host/manifest.hpp"
#include "host/trusted_files.hpp"

namespace patchbay::host {

struct Identity { // recorded with every result
    std::string kind, name, version, sha256, build, path;
};

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
    const std::vector<Manifest>& manifests() const { return manifests_; }
    const std::vector<std::string>& remarks() const { return remarks_; } // folders and libraries left out
    const std::vector<std::filesystem::path>& folders() const { return folders_; }
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
    enum class Whose { kOwn, kShipped };
    struct Obstacle { // a library of an own folder, or a whole one, that cannot be used
        size_t before; // manifests that come earlier in the search order
        std::string reason;
    };

    Registry() = default;
    void scan(const std::filesystem::path& folder, Whose);
    void leave_out(std::string remark, Whose);
    std::string fault_of_files(const std::filesystem::path& library, const std::filesystem::path& json, Whose);
    template <class Table>
    Result<Typed<Table>> make(std::string_view kind, const std::string& name, const Settings&, const Services&) const;

    std::vector<std::filesystem::path> folders_;
    std::vector<Manifest> manifests_;
    std::vector<std::string> remarks_;
    std::vector<Obstacle> obstacles_; // in search order
    TrustedFiles trusted_;
    std::optional<AllowedPlugins> allowed_; // none: any
};

}  // namespace patchbay::host
