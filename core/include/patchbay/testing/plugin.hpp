// patchbay/testing/plugin.hpp - a plugin as its library has it, or as it is linked into the test.
#pragma once
#include <dlfcn.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "patchbay/abi.h"

namespace patchbay::testing {

class Plugin {
  public:
    // Of a file: "build/mine.so". Throws std::runtime_error where it cannot be loaded.
    explicit Plugin(const std::string& file)
        : library_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* l) { if (l) dlclose(l); }) {
        if (!library_) throw std::runtime_error(std::string("cannot load the plugin: ") + dlerror());
        plugin_ = static_cast<const pb_plugin*>(dlsym(library_.get(), PB_ENTRY_SYMBOL));
        if (!plugin_) throw std::runtime_error(file + " exports no " PB_ENTRY_SYMBOL);
        check(file);
    }
    // Of a source that is compiled into the test, for a debugger or a sanitizer, which declares
    // extern "C" const pb_plugin pb_plugin_v1;
    explicit Plugin(const pb_plugin& linked) : plugin_(&linked) { check("the linked plugin"); }

    // The component of a kind ("patchbay.scheduler/1"), of that name or the first. Throws std::runtime_error: there is
    // none.
    const pb_component& component(std::string_view kind, std::string_view name = {}) const {
        for (uint32_t i = 0; i < plugin_->component_count; ++i) {
            const pb_component& c = *plugin_->components[i];
            if (c.kind == kind && (name.empty() || c.name == name)) return c;
        }
        throw std::runtime_error("the plugin has no component '" + std::string(name) + "' of " + std::string(kind));
    }

  private:
    void check(const std::string& what) const {
        if (plugin_->magic != PB_MAGIC || plugin_->abi_major != PB_ABI_MAJOR)
            throw std::runtime_error(what + " was built for another ABI: build it again");
    }

    std::shared_ptr<void> library_; // closed after the last copy
    const pb_plugin* plugin_ = nullptr;
};

}  // namespace patchbay::testing
