// What is released stays as it was declared on that day, in tests/abi/kept: types, arguments, values and ids. The
// layout test sees sizes and offsets only.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "file_text.hpp"
#include "paths.hpp"
#include "pattern.hpp"
#include "patchbay/abi/kinds.h"

namespace patchbay::released_test {
namespace {

using ::testing::HasSubstr;

struct Declared {
    std::map<std::string, std::vector<std::string>> structs; // "pb_finished" → "uint32_t struct_size", …
    std::map<std::string, std::string> others;               // "PB_FINISH_STOP" → "1", "pb_status" → "int32_t"
};

std::string collapsed(const std::string& text) { // single spaces, none beside * ( ) ,
    std::string out;
    for (const char c : text) {
        const bool space = c == ' ' || c == '\n' || c == '\t';
        const std::string_view glue = "*(),";
        if (space && (out.empty() || out.back() == ' ' || glue.find(out.back()) != glue.npos)) continue;
        if (glue.find(c) != glue.npos && !out.empty() && out.back() == ' ') out.pop_back();
        out += space ? ' ' : c;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);)
        if (part = collapsed(part); !part.empty()) out.push_back(part);
    return out;
}

std::string without_comments(std::string code) {
    for (size_t from; (from = code.find("/*")) != std::string::npos;)
        code.erase(from, code.find("*/", from) + 2 - from);
    return code;
}

// Of the released parts of a header; a part begins with its PB_<PART>_REVISION.
void add_released(Declared& out, const std::string& header) {
    static const std::set<std::string> kReleased = {
#define PB_WORD(name, id) #name,
        PB_EACH_RELEASED(PB_WORD)
#undef PB_WORD
    };
    const Pattern declaration(R"(#define (PB_\w+)[ \t]+([^\n]+)|typedef struct (\w+) \{([^}]*)\}|enum \{([^}]*)\})"
                              R"(|typedef (\w+) (\w+);)");
    const Pattern revision(R"(^PB_(\w+)_REVISION$)");
    bool released = true;
    for (const auto& found : declaration.all_in(without_comments(header))) {
        const auto group = [&](size_t i) { return i < found.size() ? found[i] : std::string(); };
        if (const auto part = revision.groups_in(group(1)); !part.empty()) released = kReleased.contains(part[1]);
        if (!released || group(1) == "PB_ABI_MINOR") continue;
        if (!group(1).empty()) out.others[group(1)] = collapsed(group(2));
        if (!group(3).empty()) out.structs[group(3)] = split(group(4), ';');
        if (!group(7).empty()) out.others[group(7)] = group(6);
        for (const std::string& value : split(group(5), ',')) {
            const size_t equals = value.find('=');
            out.others[collapsed(value.substr(0, equals))] = collapsed(value.substr(equals + 1));
        }
    }
}

Declared declared_in(const std::string& folder) {
    Declared out;
    for (const char* header : {"abi.h", "abi/tensor.h", "abi/services.h", "abi/scheduler.h", "abi/sampler.h"}) {
        const std::string text = file_text(folder + "/patchbay/" + header);
        EXPECT_FALSE(text.empty()) << folder << " has no " << header;
        add_released(out, text);
    }
    return out;
}

std::string type_of(const std::string& field) { return field.substr(0, field.rfind(' ')); }

// What of `before` is not in `now`, word for word; empty: nothing.
std::string lost(const Declared& before, const Declared& now) {
    for (const auto& [name, value] : before.others) {
        const auto at = now.others.find(name);
        if (at == now.others.end()) return name + " is gone";
        if (at->second != value) return name + " is " + at->second + ", and was " + value;
    }
    for (const auto& [name, fields] : before.structs) {
        const auto at = now.structs.find(name);
        for (size_t i = 0; i < fields.size(); ++i) {
            const std::string is = at != now.structs.end() && i < at->second.size() ? at->second[i] : "nothing";
            const bool was_reserved = fields[i] == type_of(fields[i]) + " reserved";
            if (is != fields[i] && !(was_reserved && type_of(is) == type_of(fields[i])))
                return name + " has '" + is + "' in place of '" + fields[i] + "'";
        }
    }
    return "";
}

TEST(Released, IsDeclaredAsOnTheDayOfItsRelease) {
    const Declared before = declared_in(std::string(kSourceDir) + "/tests/abi/kept/include"),
                   now = declared_in(std::string(kSourceDir) + "/core/include");
    EXPECT_EQ(lost(before, now), "");
    for (const char* name : {"pb_component", "pb_tensor", "pb_pool", "pb_clock", "pb_metrics", "pb_configure",
                             "pb_sequence", "pb_finished", "pb_scheduler", "pb_sampling_params", "pb_sampler"})
        EXPECT_TRUE(before.structs.contains(name)) << name;
    for (const char* name : {"pb_sample_work", "pb_sampler_device", "pb_runner", "pb_devices"})
        EXPECT_FALSE(before.structs.contains(name)) << name << " is a draft";
    for (const char* name :
         {"PB_SCHEDULER", "PB_SAMPLER_REVISION", "PB_CANCELLED", "PB_SEQ_SWAPPED", "PB_FP8", "pb_status"})
        EXPECT_TRUE(before.others.contains(name)) << name;
}

TEST(Released, LosesWhenAnythingButTheEndChanges) {
    const std::string was = "#define PB_SAMPLER_REVISION 2\n"
                            "typedef struct pb_odd { uint32_t struct_size; uint32_t reserved; /* why */\n"
                            "  pb_status (*call)(void *self,\n     const pb_odd *); } pb_odd;\n"
                            "enum { PB_A = 1, /* a */ PB_B = 2u };\n";
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = was;
        if (const size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
        Declared before, now;
        add_released(before, was);
        add_released(now, text);
        return lost(before, now);
    };
    EXPECT_EQ(with("", ""), "");
    EXPECT_EQ(with("PB_B = 2u", "PB_B = 2u, PB_C = 4u"), "");
    EXPECT_EQ(with("*); }", "*); int32_t more; }"), "");
    EXPECT_EQ(with("reserved", "flags"), "") << "a reserved field may get a name";
    EXPECT_EQ(with(" /* why */\n", ""), "");
    EXPECT_THAT(with("uint32_t reserved", "int32_t reserved"), HasSubstr("'int32_t reserved' in place of"));
    EXPECT_THAT(with("const pb_odd *)", "pb_odd *)"), HasSubstr("pb_odd has 'pb_status(*call)(void*self,pb_odd*)'"));
    EXPECT_THAT(with("uint32_t reserved; ", ""), HasSubstr("in place of 'uint32_t reserved'"));
    EXPECT_EQ(with("PB_A = 1", "PB_A = 3"), "PB_A is 3, and was 1");
    EXPECT_EQ(with("PB_A = 1, ", ""), "PB_A is gone");
    EXPECT_EQ(with("REVISION 2", "REVISION 3"), "PB_SAMPLER_REVISION is 3, and was 2");
}

}  // namespace
}  // namespace patchbay::released_test
