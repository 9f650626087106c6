#include "config/table.hpp"

#include <gtest/gtest.h>

#include <map>

namespace patchbay::config::table_test {
namespace {

enum class Mode { kStrict, kLoose };

struct Inner {
    std::string label = "none";
};

struct Everything {
    bool on = true;
    uint32_t count = 4;
    int64_t balance = -2;
    uint64_t seed = 0;
    double share = 0.25;
    std::string text = "t";
    Mode mode = Mode::kStrict;
    uint64_t memory = 3 << 20;
    std::optional<double> limit;
    Inner inner;
    std::vector<uint32_t> sizes{1, 2};
};

Table<Everything> table() {
    using E = Everything;
    Table<Inner> inner;
    inner.key("label", &Inner::label, "what it is called");
    Table<E> t;
    t.key("on", &E::on, "a switch")
        .key("count", &E::count, {1, 8, "things"}, "how many")
        .key("balance", &E::balance, {-10, 10, ""}, "a signed number")
        .key("seed", &E::seed, "any 64 bits")
        .key("share", &E::share, {0, 1, ""}, "a part")
        .key("text", &E::text, "words")
        .word("mode", &E::mode, {{"strict", Mode::kStrict}, {"loose", Mode::kLoose}, {"lax", Mode::kLoose}},
              "how strict")
        .bytes("memory", &E::memory, {1024, 1 << 30, ""}, "how much")
        .key("limit", &E::limit, {0, 100, "ms"}, "none when left out")
        .section("inner", &E::inner, inner, "a part")
        .values("sizes", &E::sizes, {1, 9, ""}, "numbers")
        .leave({"elsewhere"});
    return t;
}

std::string fault_of(const std::string& text) {
    Everything out;
    Faults faults;
    table().read(*parse_yaml(text, "a.yaml"), out, faults);
    return faults.failure().text;
}

Everything read(const std::string& text) {
    Everything out;
    Faults faults;
    table().read(*parse_yaml(text, "a.yaml"), out, faults);
    EXPECT_EQ(faults.failure().text, "");
    return out;
}

TEST(Table, reads_every_type) {
    const Everything e = read(
        "on: false\ncount: 8\nbalance: -7\nseed: 18446744073709551615\nshare: 1e-1\ntext: 12\nmode: lax\nmemory: "
        "1.5MiB\n"
        "limit: 20\ninner: {label: x}\nsizes: [9]\nelsewhere: {a: b}\n");
    EXPECT_FALSE(e.on);
    EXPECT_EQ(e.count, 8u);
    EXPECT_EQ(e.balance, -7);
    EXPECT_EQ(e.seed, ~uint64_t{0});
    EXPECT_EQ(e.share, 0.1);
    EXPECT_EQ(e.text, "12");
    EXPECT_EQ(e.mode, Mode::kLoose);
    EXPECT_EQ(e.memory, 3u << 19);
    EXPECT_EQ(e.limit, 20);
    EXPECT_EQ(e.inner.label, "x");
    EXPECT_EQ(e.sizes, std::vector<uint32_t>{9});
}

TEST(Table, sizes_have_binary_and_decimal_suffixes) {
    EXPECT_EQ(read("memory: 4096").memory, 4096u);
    EXPECT_EQ(read("memory: 2KiB").memory, 2048u);
    EXPECT_EQ(read("memory: 1GiB").memory, 1u << 30);
    EXPECT_EQ(read("memory: 10 MB").memory, 10'000'000u);
    EXPECT_EQ(fault_of("memory: 10Mib"), "a.yaml:1:9: 'memory' is '10Mib', expected a size such as 256MiB");
    EXPECT_EQ(fault_of("memory: 1.5"), "a.yaml:1:9: 'memory' is '1.5', expected a size such as 256MiB");
    EXPECT_EQ(fault_of("memory: 2GiB"), "a.yaml:1:9: 'memory' is 2GiB, expected 1KiB to 1GiB");
    EXPECT_EQ(fault_of("memory: -1KiB"), "a.yaml:1:9: 'memory' is -1KiB, expected 1KiB to 1GiB");
    EXPECT_EQ(fault_of("memory: MiB"), "a.yaml:1:9: 'memory' is 'MiB', expected a size such as 256MiB");
}

TEST(Table, a_value_of_the_wrong_type_says_what_was_expected) {
    EXPECT_EQ(fault_of("on: yes"), "a.yaml:1:5: 'on' is 'yes', expected true or false");
    EXPECT_EQ(fault_of("count: many"), "a.yaml:1:8: 'count' is 'many', expected a whole number");
    EXPECT_EQ(fault_of("count: 1.5"), "a.yaml:1:8: 'count' is '1.5', expected a whole number");
    EXPECT_EQ(fault_of("count: \"8\""), "a.yaml:1:8: 'count' is the string '8', expected a whole number");
    EXPECT_EQ(fault_of("count:"), "a.yaml:1:1: 'count' is empty, expected a whole number");
    EXPECT_EQ(fault_of("count: [1]"), "a.yaml:1:8: 'count' is a list, expected a whole number");
    EXPECT_EQ(fault_of("share: half"), "a.yaml:1:8: 'share' is 'half', expected a number");
    EXPECT_EQ(fault_of("text: {a: b}"), "a.yaml:1:7: 'text' is a map, expected a string");
    EXPECT_EQ(fault_of("mode: strikt"),
              "a.yaml:1:7: 'mode' is 'strikt', expected one of strict, loose, lax (did you mean 'strict'?)");
    EXPECT_EQ(fault_of("inner: x"), "a.yaml:1:8: 'inner' is 'x', expected a map of keys");
    EXPECT_EQ(fault_of("sizes: [1, x]"), "a.yaml:1:12: 'sizes' is 'x', expected a whole number");
}

TEST(Table, a_value_out_of_range_says_the_range_and_unit) {
    EXPECT_EQ(fault_of("count: 9"), "a.yaml:1:8: 'count' is 9, expected 1 to 8 things");
    EXPECT_EQ(fault_of("count: -1"), "a.yaml:1:8: 'count' is -1, expected 1 to 8 things");
    EXPECT_EQ(fault_of("count: 99999999999999999999999"),
              "a.yaml:1:8: 'count' is 99999999999999999999999, expected 1 to 8 things");
    EXPECT_EQ(fault_of("balance: -11"), "a.yaml:1:10: 'balance' is -11, expected -10 to 10");
    EXPECT_EQ(fault_of("seed: 18446744073709551616"),
              "a.yaml:1:7: 'seed' is 18446744073709551616, expected 0 to 18446744073709551615");
    EXPECT_EQ(fault_of("seed: -1"), "a.yaml:1:7: 'seed' is -1, expected at least 0");
    EXPECT_EQ(fault_of("share: nan"), "a.yaml:1:8: 'share' is nan, expected 0 to 1");
    EXPECT_EQ(fault_of("limit: 101"), "a.yaml:1:8: 'limit' is 101, expected 0 to 100 ms");
}

TEST(Table, unknown_keys_come_with_a_guess_also_from_sections) {
    EXPECT_EQ(fault_of("cuont: 1"), "a.yaml:1:1: unknown key 'cuont' (did you mean 'count'?)");
    EXPECT_EQ(fault_of("label: 1"), "a.yaml:1:1: unknown key 'label' (did you mean 'inner.label'?)");
    EXPECT_EQ(fault_of("elswhere: 1"), "a.yaml:1:1: unknown key 'elswhere' (did you mean 'elsewhere'?)");
    EXPECT_EQ(fault_of("inner: {labl: x}"), "a.yaml:1:9: unknown key 'labl' (did you mean 'label'?)");
    EXPECT_EQ(fault_of("xyzzy: 1"), "a.yaml:1:1: unknown key 'xyzzy'");
}

TEST(Table, all_faults_are_reported_together_in_the_order_of_the_file) {
    EXPECT_EQ(fault_of("share: 2\nwhat: 1\non: maybe\n"),
              "a.yaml:1:8: 'share' is 2, expected 0 to 1\n"
              "a.yaml:2:1: unknown key 'what'\n"
              "a.yaml:3:5: 'on' is 'maybe', expected true or false");
}

TEST(Table, a_required_key_must_be_given) {
    Table<Inner> t;
    t.key("label", &Inner::label, "what it is called").required();
    Inner out;
    Faults faults;
    t.read(*parse_yaml("{}", "a.yaml"), out, faults);
    EXPECT_EQ(faults.failure().text, "a.yaml:1:1: 'label' is missing: what it is called");
}

TEST(Table, the_effective_tree_has_every_key_with_its_origin) {
    Everything out;
    Faults faults;
    const Node node = table().read(*parse_yaml("count: 8\nmode: lax\nlimit: ~\n", "a.yaml"), out, faults);
    EXPECT_EQ(node.entries.size(), 11u);
    EXPECT_EQ(node.at("count")->origin.text(), "a.yaml:1:8");
    EXPECT_EQ(node.at("mode")->text, "loose");
    EXPECT_EQ(node.at("share")->text, "0.25");
    EXPECT_EQ(node.at("share")->origin.text(), "default");
    EXPECT_EQ(node.at("memory")->text, "3MiB");
    EXPECT_EQ(node.at("inner.label")->text, "none");
    EXPECT_EQ(node.at("limit")->kind, NodeKind::kNull);
    EXPECT_EQ(node.at("sizes")->items.size(), 2u);
}

TEST(Table, defaults_are_those_of_the_struct) {
    std::map<std::string, std::optional<std::string>> fallbacks;
    for (const KeyInfo& key : table().keys()) fallbacks[key.name] = key.default_value;
    EXPECT_EQ(fallbacks["count"], "4");
    EXPECT_EQ(fallbacks["mode"], "strict");
    EXPECT_EQ(fallbacks["memory"], "3MiB");
    EXPECT_EQ(fallbacks["limit"], std::nullopt);
}

}  // namespace
}  // namespace patchbay::config::table_test
