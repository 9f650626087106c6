#include <algorithm>

#include "base/printable.hpp"
#include "base/thread_pool.hpp"
#include "doctor/findings.hpp"

namespace patchbay::doctor {
namespace {

std::string text_of(const char* from, size_t size) { return {from, std::find(from, from + size, '\0')}; }

Finding check_device(const host::Registry& registry, const std::string& device, const std::string& isa) {
    ThreadPool pool(1);
    const host::Settings settings = isa.empty() ? host::Settings{} : host::Settings{{"isa", isa}};
    const std::string name = device + (isa.empty() ? "" : " at " + isa);
    const auto made = registry.device(device, settings, {&pool.service(), nullptr, nullptr});
    if (!made) return {"device", name, State::kAbsent, made.error(), ""};
    pb_device_info info = sized<pb_device_info>();
    if (const auto known = made->checked<&pb_device::info>(&info); !known)
        return {"device", name, State::kAbsent, known.error(), ""};
    return {"device", name, State::kGood, isa.empty() ? text_of(info.name, sizeof info.name) : "available", ""};
}

}  // namespace

std::vector<Finding> check_plugin_folders(const host::Registry& registry) {
    std::vector<Finding> out;
    for (const auto& folder : registry.folders()) {
        size_t plugins = 0;
        for (const host::Manifest& m : registry.manifests()) plugins += m.library.parent_path() == folder;
        out.push_back({"plugins", printable(folder.string(), 1000), plugins > 0 ? State::kGood : State::kNote,
                       std::to_string(plugins) + (plugins == 1 ? " plugin" : " plugins"), ""});
    }
    for (const std::string& remark : registry.remarks())
        out.push_back({"plugins", "left out", State::kNote, remark, ""});
    return out;
}

std::vector<Finding> check_devices(const host::Registry& registry) {
    std::vector<Finding> out;
    for (const std::string& device : registry.names("device")) {
        const auto manifest = registry.find("device", device);
        std::string keys; // that it cannot be made without
        if (manifest)
            for (const host::ParamManifest& param : (*manifest)->params)
                if (!param.default_value) keys += (keys.empty() ? "" : ", ") + param.name;
        if (!keys.empty()) {
            out.push_back({"device", device, State::kGood, "available, with values for " + keys, ""});
            continue;
        }
        out.push_back(check_device(registry, device, ""));
        if (!manifest) continue;
        for (const host::ParamManifest& param : (*manifest)->params)
            if (param.name == "isa")
                for (const std::string& choice : param.choices)
                    if (choice != "auto") out.push_back(check_device(registry, device, choice));
    }
    if (out.empty())
        out.push_back({"device", "plugins", State::kAbsent, "no device plugin is installed", "patchbay plugin list"});
    return out;
}

}  // namespace patchbay::doctor
