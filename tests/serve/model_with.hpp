// The demo model with other files in its folder.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing {

using Files = std::map<std::string, std::string>;

// Files are added to the folder or replace its own; keys are further ones of config.json.
struct ModelWith {
    explicit ModelWith(const Files& files, const Json& keys = Json::object()) {
        namespace fs = std::filesystem;
        const fs::path from = engine::testing::repository("models/demo-draft");
        for (const auto& file : fs::directory_iterator(from)) fs::copy(file, folder.path());
        for (const auto& [name, text] : files) {
            fs::create_directories((folder.path() / name).parent_path());
            std::ofstream(folder.path() / name) << text;
        }
        std::ifstream in(from / "config.json");
        Json config = Json::parse(in);
        config.update(keys);
        std::ofstream(folder.path() / "config.json") << config;
    }
    config::EngineConfig config() const {
        config::EngineConfig c = Running::demo_model();
        c.model.path = folder.path().string();
        return c;
    }
    TemporaryFolder folder;
};

}  // namespace patchbay::serve::testing
