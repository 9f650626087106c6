#include "config/document.hpp"

#include "unit/config/config_fixture.hpp"

namespace patchbay::config::document_test {
namespace {

using Document_ = ConfigFiles;

std::string parse_fault(const std::string& text, const DocumentLimits& limits = {}) {
    const auto node = parse_yaml(text, "a.yaml", limits);
    return node ? "" : node.error();
}

Node parse(const std::string& text) {
    auto node = parse_yaml(text, "a.yaml");
    EXPECT_TRUE(node) << node.error();
    return node ? *std::move(node) : Node{};
}

TEST(Yaml, every_value_knows_its_line_and_column) {
    const Node root = parse("a: 1\nb:\n  c: [x, \"8\"]\n");
    EXPECT_EQ(root.at("a")->origin.text(), "a.yaml:1:4");
    EXPECT_EQ(root.at("b.c")->items[1].origin.text(), "a.yaml:3:10");
    EXPECT_EQ(root.entries[1].key_origin.text(), "a.yaml:2:1");
    EXPECT_FALSE(root.at("b.c")->items[0].quoted);
    EXPECT_TRUE(root.at("b.c")->items[1].quoted);
    EXPECT_EQ(root.at("b.d"), nullptr);
}

TEST(Yaml, broken_text_is_a_fault_with_its_place) {
    EXPECT_EQ(parse_fault("a: [1, 2\nb: 3\n"), "a.yaml:2:2: invalid YAML: end of sequence flow not found");
    EXPECT_EQ(parse_fault("a: *missing\n"), "a.yaml:1:4: invalid YAML: the referenced anchor is not defined");
    EXPECT_EQ(parse_fault("b: 1\na: \"never ends\n"), "a.yaml:2:4: a quoted text that never ends");
    EXPECT_EQ(parse_fault("a: 'it''s\nb: 1\n"), "a.yaml:1:4: a quoted text that never ends");
    EXPECT_EQ(parse_fault("a: \"\\\"\n"), "a.yaml:1:4: a quoted text that never ends");
    for (const char* head : {"!!str ", "&x ", "!!str &x ", "&x !!str ", "! ", "!!str # why\n  ", "!<tag:a.b,2026:c>\t"})
        for (const char* rest : {"\"/path\n", "'/path\n"})
            EXPECT_EQ(parse_fault(std::string("a: ") + head + rest), "a.yaml:1:4: a quoted text that never ends");
}

TEST(Yaml, only_utf8_is_text) {
    EXPECT_EQ(parse_fault(std::string("a: 1\nb: \0", 9)), "a.yaml:2: this line is not UTF-8 text");
    for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                            "\xf4\x90\x80\x80", "\xe2\x82"})
        EXPECT_EQ(parse_fault(std::string("a: ") + bad), "a.yaml:1: this line is not UTF-8 text");
    EXPECT_EQ(parse("a: \u00e9\u20ac\U0001f999\n").at("a")->text, "\u00e9\u20ac\U0001f999");
}

TEST(Yaml, quoted_texts_and_a_byte_order_mark_are_read) {
    EXPECT_EQ(parse("\xef\xbb\xbf" "a: 'it''s'\n").at("a")->text, "it's");
    EXPECT_EQ(parse("a: \"\\\"\"\n").at("a")->text, "\"");
    EXPECT_EQ(parse("a: !!str &x 'y'\nb: !!str it's\n").at("a")->text, "y");
    EXPECT_EQ(parse("a: !!str # it's\nb: &x # \"\n").at("a")->text, "");
}

TEST(Yaml, a_key_given_twice_is_a_fault_that_names_the_first) {
    EXPECT_EQ(parse_fault("a: 1\nb: 2\na: 3\nb: 4\n"),
              "a.yaml:3:1: key 'a' is given twice, first at line 1\n"
              "a.yaml:4:1: key 'b' is given twice, first at line 2");
}

TEST(Yaml, keys_must_be_words) {
    EXPECT_EQ(parse_fault("? [a, b]\n: 1\n"), "a.yaml:1:3: a key must be a word, this one is a list");
    EXPECT_EQ(parse_fault("~: 1\n"), "a.yaml:1:1: a key must be a word, this one is empty");
    EXPECT_EQ(parse_fault("a: &x {b: 1}\nc:\n  <<: *x\n"),
              "a.yaml:3:3: merge keys (<<) are not supported, use include");
}

TEST(Yaml, a_second_document_is_refused) {
    EXPECT_EQ(parse_fault("a: 1\n---\nb: 2\n"), "a.yaml:3:1: a second document (---), expected one");
}

TEST(Yaml, an_empty_file_is_empty_and_has_a_place) {
    EXPECT_EQ(parse("").kind, NodeKind::kNull);
    EXPECT_EQ(parse("# nothing\n").origin.text(), "a.yaml:1:1");
}

TEST(Yaml, aliases_are_expanded_within_the_limits) {
    EXPECT_EQ(parse("a: &x [1, 2]\nb: *x\n").at("b")->items.size(), 2u);
    EXPECT_EQ(parse_fault("a: &x [*x]\n"), "a.yaml:1:8: an alias inside of what it names");
    std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string alias = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
        for (int k = 1; k < 10; ++k) bomb += ", " + alias;
        bomb += "]\n";
    }
    EXPECT_THAT(parse_fault(bomb), ::testing::HasSubstr("more than 200000 values, aliases expanded"));
    std::string texts = "a: &a " + std::string(900'000, 'x') + "\nb: [*a";
    for (int i = 0; i < 20; ++i) texts += ", *a";
    EXPECT_THAT(parse_fault(texts + "]\n"), ::testing::HasSubstr("more than 8388608 bytes, aliases expanded"));
    std::string deep = "a0: &a0 [1]\n";
    for (int i = 1; i < 40; ++i)
        deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
    EXPECT_THAT(parse_fault(deep), ::testing::HasSubstr("nested more than 32 levels deep"));
}

TEST(Yaml, size_depth_keys_and_values_are_limited) {
    EXPECT_EQ(parse_fault("abcdef", {.bytes = 5}), "a.yaml has 6 bytes, more than the 5 of a configuration");
    EXPECT_EQ(parse_fault("[[[1]]]", {.depth = 2}), "a.yaml:1:3: nested more than 2 levels deep");
    EXPECT_EQ(parse_fault("{a: 1, b: 2, c: 3}", {.keys = 2}), "a.yaml:1:14: a map of more than 2 keys");
    EXPECT_EQ(parse_fault("[1, 2, 3]", {.nodes = 3}), "a.yaml:1:8: more than 3 values, aliases expanded");
    std::string deep;
    for (int i = 0; i < 50'000; ++i) deep += "[1, ";
    EXPECT_NE(parse_fault(deep), "");
    EXPECT_NE(parse_fault(std::string(100'000, '[')), "");
    EXPECT_NE(parse_fault(std::string(100'000, '{')), "");
}

TEST(Yaml, control_characters_do_not_reach_the_terminal) {
    const std::string fault = parse_fault("\"a\\e[31mb\": 1\n\"a\\e[31mb\": 2\n");
    EXPECT_EQ(fault, "a.yaml:2:1: key 'a\\x1b[31mb' is given twice, first at line 1");
}

TEST_F(Document_, included_files_lie_under_the_file_and_keep_their_places) {
    write("base/engine.yaml", "engine:\n  block_size: 8\n  seed: 1\nlist: [1, 2]\n");
    write("over.yaml", "engine:\n  seed: 2\n");
    write("sub/a.yaml", "include: [../base/engine.yaml, ../over.yaml]\nengine:\n  threads: 3\nlist: [9]\n");
    const auto document = load_document("sub/a.yaml");
    ASSERT_TRUE(document) << document.error();
    const Node& root = document->root;
    EXPECT_EQ(root.at("engine.block_size")->origin.text(), "base/engine.yaml:2:15");
    EXPECT_EQ(root.at("engine.seed")->text, "2");
    EXPECT_EQ(root.at("engine.seed")->origin.text(), "over.yaml:2:9");
    EXPECT_EQ(root.at("engine.threads")->origin.text(), "sub/a.yaml:3:12");
    EXPECT_EQ(root.at("list")->items.size(), 1u);
    EXPECT_EQ(root.find("include"), nullptr);
    ASSERT_EQ(document->files.size(), 3u);
    EXPECT_EQ(document->files[0].path, "sub/a.yaml");
    EXPECT_EQ(document->files[2].text, "engine:\n  seed: 2\n");
}

TEST_F(Document_, including_oneself_or_what_is_not_there_is_a_fault_where_it_is_said) {
    write("a.yaml", "include: b.yaml\n");
    write("b.yaml", "x: 1\ninclude: a.yaml\n");
    EXPECT_EQ(load_document("a.yaml").error(), "b.yaml:2:10: include 'a.yaml' includes itself");
    write("c.yaml", "include: [missing.yaml]\n");
    EXPECT_EQ(load_document("c.yaml").error(), "c.yaml:1:11: cannot read missing.yaml: No such file or directory");
    write("d.yaml", "include: {a: b}\n");
    EXPECT_EQ(load_document("d.yaml").error(), "d.yaml:1:10: 'include' is a map, expected a file or a list of files");
    EXPECT_EQ(load_document("none.yaml").error(), "cannot read none.yaml: No such file or directory");
    write("e.yaml", "- 1\n");
    EXPECT_EQ(load_document("e.yaml").error(), "e.yaml:1:1: the file is a list, expected a map of keys");
}

// An include may name any file: what is wrong with it is said without what it holds.
TEST_F(Document_, errors_quote_nothing_of_an_included_file) {
    write("a.yaml", "include: secret\n");
    const auto said = [&](const std::string& content) {
        write("secret", content);
        return load_document("a.yaml").error();
    };
    EXPECT_EQ(said("root:x:0:0:root:/root:/bin/bash\nhunter2:x:1\n"),
              "secret:1:1: the file is plain text, expected a map of keys");
    EXPECT_EQ(said("hunter2: 1\nhunter2: 2\n"), "secret:2:1: a key is given twice, first at line 1");
    EXPECT_THAT(said("a: *hunter2\n"),
                ::testing::AllOf(::testing::StartsWith("secret:1:"), ::testing::EndsWith(": invalid YAML")));
    EXPECT_EQ(said("- hunter2\n"), "secret:1:1: the file is a list, expected a map of keys");
    write("b.yaml", "hunter2\n");
    EXPECT_EQ(load_document("b.yaml").error(), "b.yaml:1:1: the file is 'hunter2', expected a map of keys");
}

TEST_F(Document_, a_file_may_be_included_twice_but_not_without_end) {
    write("base.yaml", "a: 1\n");
    write("left.yaml", "include: base.yaml\n");
    write("both.yaml", "include: [left.yaml, base.yaml]\n");
    EXPECT_TRUE(load_document("both.yaml"));
    for (int i = 0; i < 30; ++i)
        write("f" + std::to_string(i) + ".yaml", "include: f" + std::to_string(i + 1) + ".yaml\n");
    EXPECT_EQ(load_document("f0.yaml").error(), "f16.yaml:1:10: more than 16 files that include one another");
    std::string many = "include: [base.yaml";
    for (int i = 0; i < 300; ++i) many += ", base.yaml";
    write("many.yaml", many + "]\n");
    EXPECT_THAT(load_document("many.yaml").error(), ::testing::HasSubstr("more than 256 files"));
}

TEST(Merge, maps_merge_and_everything_else_is_replaced) {
    const Node merged = merge(parse("a: {b: 1, c: [1, 2]}\nd: 1\n"), parse("a: {c: [3]}\nd: {e: 2}\nf: 3\n"));
    EXPECT_EQ(merged.at("a.b")->text, "1");
    EXPECT_EQ(merged.at("a.c")->items.size(), 1u);
    EXPECT_EQ(merged.at("d.e")->text, "2");
    EXPECT_EQ(merged.at("f")->text, "3");
}

TEST(Merge, a_slot_written_as_a_word_takes_keys_and_another_plugin_drops_them) {
    EXPECT_EQ(merge(parse("scheduler: sjf"), parse("scheduler: {ageing: 3}")).at("scheduler.plugin")->text, "sjf");
    EXPECT_EQ(merge(parse("model: here"), parse("model: {dtype: f32}")).at("model.path")->text, "here");
    const Node base = parse("scheduler: {plugin: sjf, ageing: 3}\nmodel: {plugin: llama, path: here}\n");
    EXPECT_EQ(merge(base, parse("scheduler: {plugin: fcfs}")).at("scheduler.ageing"), nullptr);
    EXPECT_EQ(merge(base, parse("scheduler: {plugin: sjf, first: long}")).at("scheduler.ageing")->text, "3");
    EXPECT_EQ(merge(base, parse("model: {plugin: other}")).at("model.path")->text, "here");
}

TEST(Merge, a_word_over_a_map_is_one_of_its_keys) {
    const Node base = parse("scheduler: {plugin: sjf, ageing: 3}\nmodel: {path: a, dtype: float32}\n");
    EXPECT_EQ(merge(base, parse("scheduler: sjf")).at("scheduler.ageing")->text, "3");
    const Node other = merge(base, parse("scheduler: fcfs\nmodel: b"));
    EXPECT_EQ(other.at("scheduler.plugin")->text, "fcfs");
    EXPECT_EQ(other.at("scheduler.ageing"), nullptr);
    EXPECT_EQ(other.at("model.path")->text, "b");
    EXPECT_EQ(other.at("model.dtype")->text, "float32");
    const Node none = merge(parse("proposer: {plugin: ngram, n: 2}"), parse("proposer: none"));
    EXPECT_EQ(none.at("proposer.plugin")->text, "none");
    EXPECT_EQ(none.at("proposer.n"), nullptr);
}

TEST(Merge, a_folder_takes_the_place_of_a_shape) {
    const Node shape = parse("model: {load_format: dummy, shape: {a: 1}, dtype: float32}\n");
    for (const char* folder : {"model: b", "model: {path: b}"}) {
        const Node merged = merge(shape, parse(folder));
        EXPECT_EQ(merged.at("model.path")->text, "b") << folder;
        EXPECT_EQ(merged.at("model.shape"), nullptr) << folder;
        EXPECT_EQ(merged.at("model.load_format"), nullptr) << folder;
        EXPECT_EQ(merged.at("model.dtype")->text, "float32") << folder;
    }
    EXPECT_EQ(merge(parse("model: {path: a, load_format: dummy, shape: {}}"), parse("model: b"))
                  .at("model.load_format")
                  ->text,
              "dummy");
}

TEST(Merge, keys_without_a_plugin_are_those_of_the_default) {
    EXPECT_EQ(merge(parse("device: {isa: avx2}"), parse("device: sim")).at("device.isa"), nullptr);
    EXPECT_EQ(merge(parse("device: {isa: avx2}"), parse("device: cpu")).at("device.isa")->text, "avx2");
    EXPECT_EQ(merge(parse("proposer: {n: 2}"), parse("proposer: ngram")).at("proposer.n")->text, "2")
        << "there is no default";
}

TEST(Merge, an_empty_section_changes_nothing) {
    const Node base = parse("engine: {seed: 1}\nallowed_plugins: {a.so: x}\nscheduler: sjf\nmodel: a\n"
                            "proposer: {plugin: ngram}\nkv_policy: {plugin: lru}\nlist: [1]\n");
    const Node merged = merge(base, parse("engine:\nallowed_plugins:\nscheduler:\nmodel:\nproposer: ~\n"
                                          "kv_policy: ~\nlist: ~\n"));
    EXPECT_EQ(merged.at("engine.seed")->text, "1");
    EXPECT_NE(merged.find("allowed_plugins")->find("a.so"), nullptr);
    EXPECT_EQ(merged.at("scheduler")->text, "sjf");
    EXPECT_EQ(merged.at("model")->text, "a");
    for (const char* key : {"proposer", "kv_policy", "list"}) EXPECT_EQ(merged.at(key)->kind, NodeKind::kNull) << key;
}

TEST(Dotted, keys_of_a_section_belong_together_in_any_order) {
    for (const char* keys : {"{scheduler.ageing: 3, scheduler: sjf}", "{scheduler: sjf, scheduler.ageing: 3}",
                             "{scheduler.ageing: 3, scheduler.plugin: sjf}"}) {
        const auto node = expand_dotted(parse(keys));
        ASSERT_TRUE(node) << keys;
        EXPECT_EQ(node->at("scheduler.plugin")->text, "sjf") << keys;
        EXPECT_EQ(node->at("scheduler.ageing")->text, "3") << keys;
    }
    EXPECT_EQ(expand_dotted(parse("{engine.seed: 2, engine: }"))->at("engine.seed")->text, "2");
}

TEST(Dotted, paths_become_maps_and_keep_their_places) {
    const auto node = expand_dotted(parse("engine.max_num_seqs: 8\nengine.seed: 2\nscheduler.plugin: sjf\n"));
    ASSERT_TRUE(node);
    EXPECT_EQ(node->at("engine.max_num_seqs")->origin.text(), "a.yaml:1:22");
    EXPECT_EQ(node->at("engine.seed")->text, "2");
    EXPECT_EQ(node->at("scheduler.plugin")->text, "sjf");
}

TEST(Dotted, what_is_no_path_is_a_fault) {
    EXPECT_EQ(expand_dotted(parse("a..b: 1")).error(),
              "a.yaml:1:1: key 'a..b' is not a dotted path such as engine.max_num_seqs");
    EXPECT_EQ(expand_dotted(parse(".a: 1")).error(),
              "a.yaml:1:1: key '.a' is not a dotted path such as engine.max_num_seqs");
    std::string deep = "a";
    for (int i = 0; i < 50; ++i) deep += ".a";
    EXPECT_THAT(expand_dotted(parse(deep + ": 1")).error(), ::testing::HasSubstr("nested more than 32 levels deep"));
}

TEST(Faults, they_are_sorted_by_place_and_flags_come_last) {
    const Node root = parse("a: 1\nb: 2\n");
    Faults faults;
    faults.add(Origin::flag("--x"), "third");
    faults.add(root.at("b")->origin, "second");
    faults.add(root.at("a")->origin, "first");
    EXPECT_EQ(faults.failure().text, "a.yaml:1:4: first\na.yaml:2:4: second\n--x: third");
}

TEST(Faults, a_file_full_of_them_is_cut_short) {
    std::string text = "a: 1\n";
    for (int i = 0; i < 150; ++i) text += "a: 1\n";
    EXPECT_THAT(parse_fault(text),
                ::testing::EndsWith("\na.yaml:101:1: key 'a' is given twice, first at line 1\nand 50 more"));
}

}  // namespace
}  // namespace patchbay::config::document_test
