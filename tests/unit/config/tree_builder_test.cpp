// Trees without a parser: what a builder makes of values in their order, and what a budget refuses.
#include "config/tree_builder.hpp"

#include <gtest/gtest.h>

namespace patchbay::config::tree_builder_test {
namespace {

Origin at(uint32_t line) { return {Origin::Kind::kFile, std::make_shared<const std::string>("a"), line, 1}; }

template <class F>
std::string refusal_of(F&& f) {
    try {
        f();
    } catch (const Refusal& refusal) {
        return refusal.origin.text() + ": " + refusal.text;
    }
    return "";
}

struct TreeBuilderTest : ::testing::Test {
    void word(const char* text, uint32_t line = 1) { tree.add(Node::scalar(text, at(line)), 0); }

    DocumentLimits limits{.nodes = 20, .depth = 3, .keys = 2};
    TreeBuilder tree{limits, Quoting::kContent};
};

TEST_F(TreeBuilderTest, ValuesGoIntoWhatIsOpen) {
    tree.open(Node::map(at(1)), 0);
    word("a");
    tree.open(Node::list(at(2)), 0);
    word("1");
    word("2");
    tree.close();
    word("b", 3);
    word("3", 4);
    tree.close();
    EXPECT_FALSE(tree.faults().any());
    const Node root = tree.take();
    EXPECT_EQ(root.at("a")->items.size(), 2u);
    EXPECT_EQ(root.at("a")->items[1].text, "2");
    EXPECT_EQ(root.at("b")->origin.line, 4u);
    EXPECT_EQ(root.entries[1].key_origin.line, 3u);
}

TEST_F(TreeBuilderTest, OneValueIsATree) {
    word("x");
    EXPECT_EQ(tree.take().text, "x");
}

TEST_F(TreeBuilderTest, AnAliasIsACopyOfWhatItNames) {
    tree.open(Node::list(at(1)), 0);
    tree.open(Node::list(at(1)), 7);
    word("x");
    EXPECT_EQ(refusal_of([&] { tree.add_alias(7, at(2)); }), "a:2:1: an alias inside of what it names");
    tree.close();
    tree.add_alias(7, at(3));
    tree.close();
    const Node root = tree.take();
    ASSERT_EQ(root.items.size(), 2u);
    EXPECT_EQ(root.items[1].items[0].text, "x");
}

TEST_F(TreeBuilderTest, AKeyIsAWordAndIsGivenOnce) {
    tree.open(Node::map(at(1)), 0);
    EXPECT_EQ(refusal_of([&] { tree.open(Node::list(at(2)), 0); }), "a:2:1: a key must be a word, this one is a list");
    EXPECT_EQ(refusal_of([&] { tree.add(Node(), 0); }), "default: a key must be a word, this one is empty");
    EXPECT_EQ(refusal_of([&] { word("<<", 3); }), "a:3:1: merge keys (<<) are not supported, use include");
    for (uint32_t line : {4, 5}) {
        word("k", line);
        word("v", line);
    }
    EXPECT_EQ(tree.faults().lines(), std::vector<std::string>{"a:5:1: key 'k' is given twice, first at line 4"});
    word("l");
    word("v");
    EXPECT_EQ(refusal_of([&] { word("m", 6); }), "a:6:1: a map of more than 2 keys");
}

TEST_F(TreeBuilderTest, WhatTheFileHoldsIsNotQuotedWhereThatIsSaid) {
    TreeBuilder silent(limits, Quoting::kNothing);
    silent.open(Node::map(), 0);
    for (uint32_t line : {1, 1, 2, 2}) silent.add(Node::scalar("hunter2", at(line)), 0);
    EXPECT_EQ(silent.faults().lines(), std::vector<std::string>{"a:2:1: a key is given twice, first at line 1"});
}

TEST_F(TreeBuilderTest, NestingIsLimitedThroughAliasesToo) {
    tree.open(Node::list(at(1)), 0);
    tree.open(Node::list(at(1)), 1);
    tree.open(Node::list(at(1)), 0);
    EXPECT_EQ(refusal_of([&] { tree.open(Node::list(at(2)), 0); }), "a:2:1: nested more than 3 levels deep");
    tree.close();
    tree.close();
    tree.open(Node::list(at(1)), 0);
    EXPECT_EQ(refusal_of([&] { tree.add_alias(1, at(3)); }), "a:3:1: nested more than 3 levels deep");
}

TEST(TreeBudget, CountsValuesAndBytesOfWhatIsCopied) {
    const DocumentLimits limits{.bytes = 1, .nodes = 5}; // of texts: 8 bytes
    Node pair = Node::list(at(1));
    pair.items = {Node::scalar("12", at(1)), Node::scalar("3", at(1))};
    TreeBudget values(limits);
    values.add_copy(pair, 0, at(2));
    values.add(pair); // without its items
    EXPECT_EQ(refusal_of([&] { values.add_copy(pair, 0, at(3)); }), "a:3:1: more than 5 values, aliases expanded");
    TreeBudget bytes(limits);
    bytes.add(Node::scalar("12345678", at(1)));
    EXPECT_EQ(refusal_of([&] { bytes.add(Node::scalar("9", at(4))); }), "a:4:1: more than 8 bytes, aliases expanded");
}

}  // namespace
}  // namespace patchbay::config::tree_builder_test
