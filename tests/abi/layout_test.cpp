// What crosses lies where layout.txt says, in C11 and in C++20 alike.
#include "layout.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "paths.hpp"
#include "pattern.hpp"
#include "patchbay/abi/attention.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"
#include "patchbay/abi/services.h"

namespace {

constexpr layout_entry kOfCxx[] = {
#include "layout.inc"
};

struct Place {
    size_t first, second;  // of a struct: size, 0; of a field: offset, size
    bool operator==(const Place&) const = default;
};
using Layout = std::map<std::string, Place>;

std::string text(const Place& p) {
    return std::to_string(p.first) + (p.second ? ", of " + std::to_string(p.second) + " bytes" : " bytes in all");
}

Layout committed() {
    Layout out;
    std::ifstream in(std::string(patchbay::kSourceDir) + "/tests/abi/layout.txt");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        Place place{};
        if (words >> name >> place.first && name[0] != '#') {
            words >> place.second;
            out[name] = place;
        }
    }
    return out;
}

Layout layout_of(const layout_entry* first, size_t count) {
    Layout out;
    for (size_t i = 0; i < count; ++i) out[first[i].name] = {first[i].first, first[i].second};
    return out;
}

void expect_same(const Layout& table, const Layout& now) {
    for (const auto& [name, place] : table) {
        const auto at = now.find(name);
        if (at == now.end())
            ADD_FAILURE() << name << " is gone: released fields stay";
        else
            EXPECT_EQ(at->second, place) << name << " moved: it was at " << text(place) << ", it is at "
                                         << text(at->second);
    }
    for (const auto& [name, place] : now)
        EXPECT_TRUE(table.contains(name))
            << name << " is new: add the line '" << name << " " << place.first
            << (place.second ? " " + std::to_string(place.second) : "")
            << "' to tests/abi/layout.txt, and raise PB_ABI_MINOR if its struct was released";
}

TEST(Layout, InCIsTheCommittedOne) { expect_same(committed(), layout_of(layout_of_c, layout_of_c_count)); }

TEST(Layout, InCxxIsTheCommittedOne) { expect_same(committed(), layout_of(kOfCxx, std::size(kOfCxx))); }

// name → its fields, read from the headers.
std::map<std::string, std::vector<std::string>> declared() {
    std::map<std::string, std::vector<std::string>> out;
    const std::string folder = std::string(patchbay::kSourceDir) + "/core/include/patchbay/";
    std::string all;
    for (const char* file : {"abi.h", "abi/services.h", "abi/tensor.h", "abi/cost.h", "abi/scheduler.h",
                             "abi/sampler.h", "abi/proposer.h", "abi/attention.h", "abi/device.h", "abi/model.h"}) {
        std::stringstream body;
        body << std::ifstream(folder + file).rdbuf();
        std::string code = body.str();
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

TEST(Layout, CoversEveryFieldOfEveryStructOfTheHeaders) {
    size_t count = 0;
    const Layout table = committed();
    for (const auto& [type, fields] : declared()) {
        EXPECT_TRUE(table.contains(type)) << type << " is not in layout.inc and layout.txt";
        for (const std::string& field : fields)
            EXPECT_TRUE(table.contains(type + "." + field))
                << type << "." << field << " is not in layout.inc and layout.txt";
        count += 1 + fields.size();
    }
    EXPECT_EQ(count, table.size());
}

TEST(Layout, StartsWithStructSizeWhereAStructCrossesAlone) {
    // Elements of arrays, whose stride their carrier gives; values; and those that a released one fixes for ever.
    const std::set<std::string> without = {"pb_str",          "pb_param",       "pb_setting",     "pb_sink",
                                           "pb_plugin",       "pb_tensor",      "pb_sequence",    "pb_plan_item",
                                           "pb_preempt_item", "pb_logit_bias",  "pb_sample_row",  "pb_propose_row",
                                           "pb_kv_view", "pb_limit", "pb_weight_part", "pb_weight_spec", "pb_kv_spec",
                                           "pb_attention_arrays", "pb_runner_row"};
    for (const auto& [type, fields] : declared())
        EXPECT_EQ(fields.at(0) == "struct_size", !without.contains(type)) << type;
}

}  // namespace
