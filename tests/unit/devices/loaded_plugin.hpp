// A plugin's library, opened without the host's registry, and one component made from it over a host that offers the
// thread pool alone and keeps the last error.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "patchbay/abi.h"

namespace patchbay {

class LoadedPlugin {
  public:
    LoadedPlugin(const char* library, uint32_t threads) : pool_(threads) {
        library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library_, nullptr) << dlerror();
        const auto* plugin = static_cast<const pb_plugin*>(dlsym(library_, PB_ENTRY_SYMBOL));
        component_ = plugin->components[0];
        host_ = {sizeof(pb_host), 0, this, [](void*, int32_t, pb_str) {},
                 [](void* ctx, pb_str text) { static_cast<LoadedPlugin*>(ctx)->error_.assign(text.data, text.size); },
                 [](void* ctx, const char* id) -> const void* {
                     return std::strcmp(id, PB_SERVICE_POOL) == 0 ? &static_cast<LoadedPlugin*>(ctx)->pool_.service() : nullptr;
                 }};
    }
    ~LoadedPlugin() {
        if (self_) component_->destroy(self_);
        if (library_) dlclose(library_);
    }
    LoadedPlugin(const LoadedPlugin&) = delete;

    // With one setting, `isa` (or none, for a component without it).
    pb_status create(const std::string& isa) {
        const pb_setting setting{{"isa", 3}, {isa.data(), isa.size()}};
        const pb_config config{sizeof config, component_->param_count, &setting};
        return component_->create(&host_, &config, &self_);
    }

    template <class T>
    const T& table() const { return *static_cast<const T*>(component_->vtable); }
    const pb_component& component() const { return *component_; }
    void* self() const { return self_; }
    const std::string& error() const { return error_; }

  private:
    ThreadPool pool_;
    void* library_ = nullptr;
    const pb_component* component_ = nullptr;
    pb_host host_{};
    void* self_ = nullptr;
    std::string error_;
};

}  // namespace patchbay
