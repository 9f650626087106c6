// docs/life-of-a-request.md against what is called when a request runs.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "paths.hpp"
#include "service/engine_thread.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/engine_parts/trace/call_trace.hpp"

namespace patchbay::service::life_of_a_request_test {
namespace {

using namespace engine::testing;

struct Hop {
    std::string file, function; // "engine/loop/commit.cpp", "Commit::publish"
};

std::vector<std::string> quoted_in(const std::string& line) { // `like this`
    std::vector<std::string> out;
    for (size_t at = line.find('`'); at != std::string::npos;) {
        const size_t end = line.find('`', at + 1);
        if (end == std::string::npos) break;
        out.push_back(line.substr(at + 1, end - at - 1));
        at = line.find('`', end + 1);
    }
    return out;
}

struct Page {
    std::vector<Hop> hops;       // rows of its table: | 3 | `file` | `function` | … |
    std::set<std::string> names; // whatever it quotes
};

Page read_page() {
    std::ifstream in(std::filesystem::path(kSourceDir) / "docs/life-of-a-request.md");
    Page out;
    for (std::string line; std::getline(in, line);) {
        const std::vector<std::string> quoted = quoted_in(line);
        out.names.insert(quoted.begin(), quoted.end());
        if (line.starts_with("| ") && line.size() > 2 && std::isdigit(line[2]) && quoted.size() >= 2)
            out.hops.push_back({quoted[0], quoted[1]});
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

std::vector<patchbay::testing::Call> trace_of_a_request() {
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
    const std::vector<Hop> hops = read_page().hops;
    ASSERT_GE(hops.size(), 8u);
    ASSERT_LE(hops.size(), 14u) << "a plain request is to take no more";
    const auto trace = trace_of_a_request();
    auto at = trace.begin();
    for (const Hop& hop : hops) {
        EXPECT_TRUE(defines(hop.file, hop.function)) << hop.file << " does not define " << hop.function;
        const auto found = std::find_if(at, trace.end(), [&](const patchbay::testing::Call& call) {
            return call.name.ends_with("::" + hop.function);
        });
        ASSERT_NE(found, trace.end()) << hop.function << " is not called after the hop before it";
        at = found;
    }
}

std::vector<std::string> traced_files() {
    std::istringstream in(TRACED_FILES);
    return {std::istream_iterator<std::string>(in), {}};
}

// "Intake::add" of "patchbay::engine::Intake::add", and "Intake".
std::string short_name(const std::string& name) {
    const size_t last = name.rfind("::"), before = last == 0 || last == name.npos ? last : name.rfind("::", last - 1);
    return before == name.npos ? name : name.substr(before + 2);
}
std::string class_of(const std::string& name) {
    const std::string of = short_name(name);
    return of.substr(0, of.find("::"));
}

bool is_traced(const std::string& function) {
    return std::ranges::any_of(traced_files(), [&](const std::string& file) { return defines(file, function); });
}

// A call from one class to another that may change something is a hop, or is named among what the page leaves out.
TEST(LifeOfARequest, HasNoHopThatThePageDoesNotName) {
    const Page page = read_page();
    for (const std::string& file : traced_files())
        EXPECT_TRUE(std::ranges::any_of(page.names, [&](const std::string& name) { return defines(file, name); }))
            << "the page names no function of " << file;
    for (const patchbay::testing::Call& call : trace_of_a_request()) {
        const std::string function = short_name(call.name), of = class_of(call.name);
        const bool is_own = class_of(call.caller) == of || function == of + "::" + of;
        if (call.is_const || is_own || !is_traced(function)) continue;
        EXPECT_TRUE(page.names.contains(function)) << function << ", which " << short_name(call.caller) << " calls";
    }
}

}  // namespace
}  // namespace patchbay::service::life_of_a_request_test
