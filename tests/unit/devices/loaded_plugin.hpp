// A plugin's library and one component made from it, over a host that offers only the thread pool and keeps the last
// error: for tests of the C tables.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/thread_pool.hpp"
#include "host/library.hpp"
#include "paths.hpp"
#include "patchbay/abi.h"

namespace patchbay {

inline std::string built_plugin(const std::string& plugin) {
    return std::string(kBuildDir) + "/lib/patchbay/plugins/" + plugin + ".so";
}

class LoadedPlugin {
  public:
    // `plugin` is "kind-name", as built.
    LoadedPlugin(const std::string& plugin, uint32_t threads) : pool_(threads) {
        auto opened = host::Library::open(built_plugin(plugin), "");
        if (!opened) throw std::runtime_error(opened.error());
        library_ = *opened;
        component_ = &library_->components()[0].type();
        host_ = {sizeof(pb_host), 0, this, [](void*, int32_t, pb_str) {},
                 [](void* ctx, pb_str text) { static_cast<LoadedPlugin*>(ctx)->error_.assign(text.data, text.size); },
                 [](void* ctx, const char* id) -> const void* {
                     if (std::strcmp(id, PB_SERVICE_POOL) != 0) return nullptr;
                     return &static_cast<LoadedPlugin*>(ctx)->pool_.service();
                 }};
    }
    ~LoadedPlugin() {
        if (self_) component_->destroy(self_);
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
    template <class T>
    const T& extension(const char* id) const { return *static_cast<const T*>(component_->extension(self_, id)); }
    void* self() const { return self_; }
    const std::string& error() const { return error_; }

  private:
    ThreadPool pool_;
    std::shared_ptr<host::Library> library_;
    const pb_component* component_ = nullptr;
    pb_host host_{};
    void* self_ = nullptr;
    std::string error_;
};

}  // namespace patchbay
