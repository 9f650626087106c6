#include "unit/host/host_fixture.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "patchbay/abi/proposer.h"
#include "paths.hpp"

namespace patchbay::host {

Folder::Folder() {
    std::string name = (fs::temp_directory_path() / "patchbay-host-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary folder");
    path_ = name;
}

Folder::~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

Variable::Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

Variable::~Variable() {
    if (before_)
        setenv(name_, before_->c_str(), 1);
    else
        unsetenv(name_);
}

fs::path built(const std::string& plugin) { return fs::path(kBuildDir) / "tests/host" / (plugin + ".so"); }

std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
}

void write(const fs::path& file, const std::string& bytes) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << bytes;
    if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

Manifest manifest_of(const fs::path& path) {
    const auto library = must(Library::open(path, ""));
    const pb_plugin& plugin = library->plugin();
    Manifest m{path, plugin.name, plugin.version, plugin.build, library->sha256(), plugin.abi_major, plugin.abi_minor,
               {}};
    for (const OwnComponent& c : library->components()) m.components.push_back(describe(c.type()));
    return m;
}

Manifest install(const std::string& plugin, const fs::path& to) {
    fs::create_directories(to.parent_path());
    write(to, bytes_of(built(plugin)));
    Manifest m = manifest_of(to);
    if (const auto done = write_manifest(m, manifest_path(to)); !done) throw std::runtime_error(done.error());
    return m;
}

int32_t answer_of(const Component& component) {
    const int32_t token = 0;
    const pb_propose_row row{1, &token, 1, 1};
    int32_t draft = -1;
    uint32_t count = 0;
    pb_propose_batch batch{sizeof batch, 1, sizeof row, 1, &row, &draft, &count, nullptr};
    const auto done = component.check(
        static_cast<const pb_proposer*>(component.type().vtable)->propose(component.self(), &batch), "propose");
    if (!done) throw std::runtime_error(done.error());
    return draft;
}

}  // namespace patchbay::host
