// What crosses lies where layout.txt says, in C11 and in C++20 alike.
#include "layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "file_text.hpp"
#include "paths.hpp"
#include "pattern.hpp"
#include "patchbay/abi/kinds.h"
#include "patchbay/abi/services.h"

namespace patchbay::layout_test {
namespace {

using ::testing::HasSubstr;

constexpr layout_entry kOfCxx[] = {
#include "layout.inc"
};

// "pb_str.data" → {offset, size}, "pb_str" → {size, 0}; and the part of the contract that a struct belongs to.
struct Place {
    size_t first, second;
    bool operator==(const Place&) const = default;
};
struct Part {
    size_t revision = 0, minor = 0; // minor: of the ABI, which counts what is appended to released parts
    std::map<std::string, Place> places;
    bool operator==(const Part&) const = default;
};
using Layout = std::map<std::string, Part>; // by part: "ABI", "SCHEDULER", "DEVICE_GRAPHS"

const std::string kFile = std::string(patchbay::kSourceDir) + "/tests/abi/layout.txt";

Layout committed() {
    Layout out;
    std::ifstream in(kFile);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string part, name;
        Place place{};
        if (!(words >> part >> name >> place.first) || part[0] == '#') continue;
        words >> place.second;
        if (name == "revision") out[part].revision = place.first;
        else if (name == "minor") out[part].minor = place.first;
        else out[part].places[name] = place;
    }
    return out;
}

Layout layout_of(const layout_entry* first, size_t count) {
    Layout out;
    for (const layout_entry& e : std::span(first, count))
        if (e.name == std::string("revision")) out[e.part].revision = e.first;
        else out[e.part].places[e.name] = {e.first, e.second};
    out["ABI"].minor = PB_ABI_MINOR;
    return out;
}

void write(const Layout& layout) {
    std::ofstream out(kFile);
    out << "# Written by PATCHBAY_UPDATE_LAYOUT=1 test_abi: part, struct, bytes; part, field, offset, bytes.\n";
    for (const auto& [part, its] : layout) {
        out << part << " revision " << its.revision << '\n';
        if (part == "ABI") out << part << " minor " << its.minor << '\n';
        for (const auto& [name, place] : its.places) {
            out << part << ' ' << name << ' ' << place.first;
            if (place.second) out << ' ' << place.second;
            out << '\n';
        }
    }
}

bool is_released(const std::string& part) {
#define PB_WORD(name, id) #name,
    static const std::set<std::string> kReleased = {"ABI", PB_EACH_RELEASED(PB_WORD)};
#undef PB_WORD
    return kReleased.contains(part);
}

// The field that a reserved one has become.
bool is_named_now(const Part& before, const Part& now, const std::string& reserved, const Place& place) {
    const std::string type = reserved.substr(0, reserved.find('.') + 1);
    return reserved == type + "reserved" && std::ranges::any_of(now.places, [&](const auto& field) {
        return field.first.starts_with(type) && field.second == place && !before.places.contains(field.first);
    });
}

// Why a part must not be what it is now without a new revision; empty: it only grew at the end of its structs.
std::string change_of(const Part& before, const Part& now) {
    std::map<std::string, size_t> sizes; // of structs, before
    for (const auto& [name, place] : before.places)
        if (place.second == 0) sizes[name] = place.first;
    for (const auto& [name, place] : before.places) {
        const auto at = now.places.find(name);
        if (at == now.places.end() && is_named_now(before, now, name, place)) continue;
        if (at == now.places.end()) return name + " is gone";
        if (place.second == 0 ? at->second.first < place.first : at->second != place) return name + " changed";
    }
    for (const auto& [name, place] : now.places) {
        const std::string type = name.substr(0, name.find('.'));
        if (place.second == 0 || before.places.contains(name) || !sizes.contains(type)) continue;
        const auto reserved = before.places.find(type + ".reserved");
        if (reserved != before.places.end() && reserved->second == place) continue;
        if (place.first < sizes[type]) return name + " is new, and not at the end of " + type;
    }
    return "";
}

// What has to be done about it; empty: nothing.
std::string todo(const Layout& before, const Layout& now) {
    for (const auto& [part, its] : now) {
        const auto at = before.find(part);
        if (at == before.end()) continue;
        if (is_released(part)) {
            if (at->second.revision != its.revision) return "the revision of " + part + " changed, which is released";
            const std::string why = change_of(at->second, its);
            if (!why.empty()) return why + ": " + part + " is released, so append to it, or add an extension";
            const size_t minor = before.contains("ABI") ? before.at("ABI").minor : 0;
            if (at->second.places != its.places && now.contains("ABI") && now.at("ABI").minor <= minor)
                return part + " grew and is released: set PB_ABI_MINOR to " + std::to_string(minor + 1);
            continue;
        }
        if (at->second.revision != its.revision) continue;
        if (const std::string why = change_of(at->second, its); !why.empty())
            return why + ": raise PB_" + part + "_REVISION to " + std::to_string(its.revision + 1);
    }
    for (const auto& [part, its] : before)
        if (!now.contains(part)) return "all of " + part + " is gone, which plugins are built for";
    return before == now ? "" : "the layout grew: run PATCHBAY_UPDATE_LAYOUT=1 build/release/bin/test_abi";
}

TEST(Layout, ChangesWithARevisionOnly) {
    const Layout now = layout_of(kOfCxx, std::size(kOfCxx)), before = committed();
    const std::string what = todo(before, now);
    const bool may_be_written = before.empty() || what.starts_with("the layout grew");
    if (std::getenv("PATCHBAY_UPDATE_LAYOUT") && may_be_written) write(now);
    else EXPECT_EQ(what, "");
}

TEST(Layout, IsTheSameInCAndInCxx) {
    EXPECT_TRUE(layout_of(layout_of_c, layout_of_c_count) == layout_of(kOfCxx, std::size(kOfCxx)));
}

TEST(LayoutChange, IsGrowthAtTheEndOfAStructOrANewRevision) {
    const Layout before = {{"ODD", {1, 0, {{"pb_odd", {16, 0}}, {"pb_odd.a", {0, 8}}, {"pb_odd.b", {8, 8}}}}}};
    EXPECT_EQ(todo(before, before), "");
    const auto changed = [&](auto&& change) {
        Layout now = before;
        change(now["ODD"].places);
        const std::string what = todo(before, now);
        if (what.find("raise") != std::string::npos) {
            now["ODD"].revision = 2;
            EXPECT_EQ(todo(before, now).find("raise"), std::string::npos) << "it was raised";
        }
        return what;
    };
    EXPECT_THAT(changed([](auto& p) { p["pb_odd"] = {24, 0}, p["pb_odd.c"] = {16, 8}; }), HasSubstr("grew"));
    EXPECT_THAT(changed([](auto& p) { p["pb_even"] = {8, 0}, p["pb_even.a"] = {0, 8}; }), HasSubstr("grew"));
    const std::string raise = "raise PB_ODD_REVISION to 2";
    EXPECT_EQ(changed([](auto& p) { p.erase("pb_odd.b"); }), "pb_odd.b is gone: " + raise);
    EXPECT_EQ(changed([](auto& p) { p["pb_odd.b"] = {8, 4}; }), "pb_odd.b changed: " + raise);
    EXPECT_EQ(changed([](auto& p) { p["pb_odd"] = {8, 0}; }), "pb_odd changed: " + raise);
    EXPECT_EQ(changed([](auto& p) { std::swap(p["pb_odd.a"], p["pb_odd.b"]); }), "pb_odd.a changed: " + raise);
    EXPECT_EQ(changed([](auto& p) { p["pb_odd.b"] = {8, 4}, p["pb_odd.c"] = {12, 4}; }),
              "pb_odd.b changed: " + raise);
    EXPECT_EQ(changed([](auto& p) { p["pb_odd.c"] = {12, 4}; }),
              "pb_odd.c is new, and not at the end of pb_odd: " + raise);
}

TEST(LayoutChange, OfWhatIsReleasedIsGrowthWithANewMinor) {
    const Part abi{1, 3, {}};
    const Layout before = {{"ABI", abi},
                           {"SAMPLER",
                            {2, 0, {{"pb_odd", {16, 0}}, {"pb_odd.a", {0, 8}}, {"pb_odd.reserved", {8, 8}}}}}};
    EXPECT_EQ(todo(before, before), "");
    const auto changed = [&](size_t minor, auto&& change) {
        Layout now = before;
        now["ABI"].minor = minor;
        change(now["SAMPLER"]);
        return todo(before, now);
    };
    const auto append = [](Part& p) { p.places["pb_odd"] = {24, 0}, p.places["pb_odd.c"] = {16, 8}; };
    const auto name_reserved = [](Part& p) { p.places.erase("pb_odd.reserved"), p.places["pb_odd.c"] = {8, 8}; };
    for (const auto& grow : {std::function<void(Part&)>(append), std::function<void(Part&)>(name_reserved)}) {
        EXPECT_EQ(changed(3, grow), "SAMPLER grew and is released: set PB_ABI_MINOR to 4");
        EXPECT_THAT(changed(4, grow), HasSubstr("the layout grew"));
    }
    const std::string never = ": SAMPLER is released, so append to it, or add an extension";
    EXPECT_EQ(changed(4, [](Part& p) { p.places.erase("pb_odd.a"); }), "pb_odd.a is gone" + never);
    EXPECT_EQ(changed(4, [](Part& p) { p.places["pb_odd.a"] = {0, 4}; }), "pb_odd.a changed" + never);
    EXPECT_EQ(changed(4, [](Part& p) { p.places.erase("pb_odd.reserved"), p.places["pb_odd.c"] = {8, 4}; }),
              "pb_odd.reserved is gone" + never);
    EXPECT_EQ(changed(4, [](Part& p) { p.revision = 3; }), "the revision of SAMPLER changed, which is released");
}

const std::string kFolder = std::string(patchbay::kSourceDir) + "/core/include/patchbay/";

std::vector<std::string> headers() { // "abi.h", "abi/attention.h", …
    std::vector<std::string> out = {"abi.h"};
    for (const auto& entry : std::filesystem::directory_iterator(kFolder + "abi"))
        out.push_back("abi/" + entry.path().filename().string());
    return out;
}

// name → its fields, read from the headers.
std::map<std::string, std::vector<std::string>> declared() {
    std::map<std::string, std::vector<std::string>> out;
    std::string all;
    for (const std::string& file : headers()) {
        std::string code = patchbay::file_text(kFolder + file);
        for (size_t from; (from = code.find("/*")) != std::string::npos;)
            code.erase(from, code.find("*/", from) + 2 - from);
        all += code;
    }
    const patchbay::Pattern pointer(R"(\(\*(\w+)\))"), name(R"((\w+)\s*(\[\w+\])?\s*(,|$))"),
        type(R"(typedef struct (\w+) \{([^}]*)\})");
    for (const auto& found : type.all_in(all)) {
        auto& fields = out[found[1]];
        std::istringstream body(found[2]);
        for (std::string field; std::getline(body, field, ';');) {
            if (const auto groups = pointer.groups_in(field); !groups.empty()) fields.push_back(groups[1]);
            else
                for (const auto& each : name.all_in(field)) fields.push_back(each[1]);
        }
    }
    return out;
}

std::map<std::string, Place> all_places(const Layout& layout) {
    std::map<std::string, Place> out;
    for (const auto& [part, its] : layout) out.insert(its.places.begin(), its.places.end());
    return out;
}

TEST(Layout, CoversEveryFieldOfEveryStructOfTheHeaders) {
    size_t count = 0;
    const auto places = all_places(layout_of(kOfCxx, std::size(kOfCxx)));
    for (const auto& [type, fields] : declared()) {
        EXPECT_TRUE(places.contains(type)) << type << " is not in layout.inc: run tests/abi/list-fields";
        for (const std::string& field : fields)
            EXPECT_TRUE(places.contains(type + "." + field))
                << type << "." << field << " is not in layout.inc: run tests/abi/list-fields";
        count += 1 + fields.size();
    }
    EXPECT_EQ(count, places.size());
}

// Text between the name of a struct's type and its first field: "[load] an element of params: one key …".
std::string said_of(const std::string& type) {
    for (const std::string& file : headers()) {
        const std::string code = patchbay::file_text(kFolder + file), start = "typedef struct " + type + " {";
        if (const size_t from = code.find(start); from != std::string::npos)
            return code.substr(from + start.size(), code.find("*/", from) - from - start.size());
    }
    return "";
}

TEST(Layout, SaysOfEachStructWithoutItsSizeHowItMayGrow) {
    // Of a released kind nothing changes: they begin with something else for good.
    const std::set<std::string> root = {"pb_plugin" /* magic first */};
    for (const auto& [type, fields] : declared()) {
        if (fields.at(0) == "struct_size" || root.contains(type)) continue;
        const std::string said = said_of(type);
        EXPECT_TRUE(said.find("losed") != std::string::npos || said.find("an element of") != std::string::npos)
            << type << " starts with " << fields.at(0) << ": it has to start with struct_size, or to say that it is "
            << "closed, or of which array it is an element, whose stride is given";
    }
}

}  // namespace
}  // namespace patchbay::layout_test
