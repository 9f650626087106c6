// docs/life-of-a-request.md against what is called when a request runs.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "paths.hpp"
#include "service/engine_thread.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/engine_parts/trace/call_trace.hpp"

namespace patchbay::service {
namespace {

using namespace engine::testing;

struct Hop {
    std::string file, function; // "engine/loop/commit.cpp", "Commit::publish"
};

// Rows of the page's table: | 3 | `file` | `function` | … |
std::vector<Hop> hops_of_page() {
    std::ifstream page(std::filesystem::path(kSourceDir) / "docs/life-of-a-request.md");
    std::vector<Hop> out;
    for (std::string line; std::getline(page, line);) {
        std::vector<std::string> quoted;
        for (size_t at = line.find('`'); at != std::string::npos;) {
            const size_t end = line.find('`', at + 1);
            if (end == std::string::npos) break;
            quoted.push_back(line.substr(at + 1, end - at - 1));
            at = line.find('`', end + 1);
        }
        if (line.starts_with("| ") && line.size() > 2 && std::isdigit(line[2]) && quoted.size() >= 2)
            out.push_back({quoted[0], quoted[1]});
    }
    return out;
}

// Whether a line of the file begins the function's definition: "Result<> Commit::commit(…". Calls are indented.
bool defines(const std::string& file, const std::string& function) {
    std::ifstream in(std::filesystem::path(kSourceDir) / "core/src" / file);
    for (std::string line; std::getline(in, line);) {
        const size_t at = line.find(function + "(");
        if (at == std::string::npos || line[0] == ' ' || line[0] == '/' || line.ends_with(";")) continue;
        if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '&' || line[at - 1] == '*') return true;
    }
    return false;
}

std::vector<std::string> trace_of_a_request() {
    RealClock clock;
    auto engine = engine::Engine::create(tiny_model(), registry(), clock);
    if (!engine) throw std::runtime_error(engine.error());
    EngineThread thread(*std::move(engine), {});
    engine::Request r;
    r.prompt = random_prompt(1, 12);
    r.sampling = greedy(3);
    patchbay::testing::begin_trace();
    const auto stream = thread.submit(std::move(r));
    if (!stream) throw std::runtime_error(stream.error());
    while ((*stream)->next()) {
    }
    return patchbay::testing::end_trace();
}

TEST(LifeOfARequest, IsAsThePageSays) {
    const std::vector<Hop> hops = hops_of_page();
    ASSERT_GE(hops.size(), 8u);
    ASSERT_LE(hops.size(), 14u) << "a plain request is to take no more";
    const std::vector<std::string> trace = trace_of_a_request();
    auto at = trace.begin();
    for (const Hop& hop : hops) {
        EXPECT_TRUE(defines(hop.file, hop.function)) << hop.file << " does not define " << hop.function;
        const auto found = std::find_if(at, trace.end(), [&](const std::string& name) {
            return name.ends_with("::" + hop.function);
        });
        ASSERT_NE(found, trace.end()) << hop.function << " is not called after the hop before it";
        at = found;
    }
}

}  // namespace
}  // namespace patchbay::service
