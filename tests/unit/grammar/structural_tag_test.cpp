// Structural tags: free text, in which triggers begin parts of a form.
#include <algorithm>
#include <random>

#include "grammar/first_match.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::structural_tag_test {
namespace {

StructuredOutputs tag(std::string text) {
    StructuredOutputs out;
    out.structural_tag = std::move(text);
    return out;
}

StructuredOutputs format(const std::string& f) { return tag(R"({"type": "structural_tag", "format": )" + f + "}"); }

void expect(const StructuredOutputs& asked, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
    const auto g = compiled(asked);
    ASSERT_TRUE(g);
    for (const std::string& text : good) EXPECT_TRUE(accepts(g, text)) << *asked.structural_tag << "\n" << text;
    for (const std::string& text : bad) EXPECT_FALSE(accepts(g, text)) << *asked.structural_tag << "\n" << text;
}

// What the automata say of random texts, beside searching in them.
TEST(FirstMatch, FindsWhatSearchingFinds) {
    const std::vector<std::string> texts = {"ab", "b", "aab", "ca", "bca", "aa"};
    const auto match = FirstMatch::of(texts);
    ASSERT_TRUE(match);
    std::mt19937 random(5);
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (size_t n = random() % 7; n > 0; --n) text += static_cast<char>('a' + random() % 4);
        const auto ends_at = [&](size_t end) { // texts that end there
            std::vector<size_t> out;
            for (size_t i = 0; i < texts.size(); ++i)
                if (std::string_view(text).substr(0, end).ends_with(texts[i])) out.push_back(i);
            return out;
        };
        bool before = false;
        for (size_t end = 0; end < text.size(); ++end) before = before || !ends_at(end).empty();
        const std::vector<size_t> last = ends_at(text.size());
        EXPECT_EQ(match->none().matches(text), !before && last.empty()) << text;
        for (size_t i = 0; i < texts.size(); ++i) {
            const bool ends = std::find(last.begin(), last.end(), i) != last.end();
            EXPECT_EQ(match->up_to(i).matches(text), !before && ends) << text;
        }
    }
}

TEST(StructuralTag, HoldsStructuresToTheirSchemasFromATriggerOn) {
    expect(tag(R"({"type": "structural_tag", "triggers": ["<function="], "structures": [
               {"begin": "<function=add>", "schema": {"type": "integer"}, "end": "</function>"},
               {"begin": "<function=say>", "schema": {"enum": ["hi"]}, "end": "</function>"}]})"),
           {"", "no call", "é < <function", "so: <function=add>12</function>", "<function=say>\"hi\"</function> then",
            "a<function=add>1</function><function=say>\"hi\"</function>b<<function=add>-2</function>"},
           {"<function=", "<function=sub>", "<function=add>\"hi\"</function>", "<function=add>1",
            "x<function=add>1</function",
            "<function=add>1</function><function=no", "\xFF"});
}

TEST(StructuralTag, ReadsTreesOfFormats) {
    const std::string number = R"({"type": "regex", "pattern": "[0-9]+"})";
    const std::string call = R"({"type": "tag", "begin": "<c>", "content": )" + number + R"(, "end": "</c>"})";
    expect(format(R"({"type": "const_string", "value": "yes"})"), {"yes"}, {"", "yess", "no"});
    expect(format(R"({"type": "or", "elements": [)" + number + R"(, {"type": "json_schema", "json_schema": {"const": true}}]})"),
           {"12", "true"}, {"", "false", "12true"});
    expect(format(R"({"type": "grammar", "grammar": "start: \"a\"+"})"), {"a", "aaa"}, {"", "b"});
    expect(format(R"({"type": "sequence", "elements": [{"type": "tag", "begin": "<think>", "content": {"type": "any_text"},
                      "end": "</think>"}, )" + number + "]}"),
           {"<think></think>1", "<think>a </thin <think> é</think>22"},
           {"<think>1", "<think>a</think>b</think>1", "<think>a</think>", "1"});
    expect(format(R"({"type": "triggered_tags", "triggers": ["<c"], "tags": [)" + call + R"(], "at_least_one": true})"),
           {"<c>1</c>", "a<c>1</c>b<c>2</c>"}, {"", "a", "<c>x</c>"});
    expect(format(R"({"type": "triggered_tags", "triggers": ["<c"], "tags": [)" + call + R"(], "stop_after_first": true})"),
           {"", "a", "a<c>1</c>"}, {"<c>1</c>b", "<c>1</c><c>1</c>"});
    expect(format(R"({"type": "tags_with_separator", "separator": ", ", "tags": [)" + call + "]}"),
           {"", "<c>1</c>", "<c>1</c>, <c>2</c>"}, {", ", "<c>1</c>,", "<c>1</c><c>2</c>"});
    expect(format(R"({"type": "tags_with_separator", "separator": "", "at_least_one": true, "stop_after_first": true, "tags": [)"
                  + call + "]}"),
           {"<c>1</c>"}, {"", "<c>1</c><c>2</c>"});
    // Free text with tags inside a tag, which has two ends; and free text in front of a fixed one.
    expect(format(R"({"type": "tag", "begin": "[", "end": ["]", ";"], "content": {"type": "triggered_tags", "triggers": ["<c"],
                      "tags": [)" + call + "]}}"),
           {"[]", "[;", "[a<c>1</c>b]", "[<c>1</c>;"}, {"[", "[a]b]", "[a;]", "[<c>]", "[<c>1</c>"});
    expect(format(R"({"type": "sequence", "elements": [{"type": "any_text"}, {"type": "const_string", "value": "end"}]})"),
           {"end", "an enend"}, {"", "en", "endend", "end."});
    const std::string text_or_number = R"({"type": "or", "elements": [{"type": "any_text"}, )" + number + "]}";
    expect(format(R"({"type": "tag", "begin": "[", "end": ["]", ";"], "content": )" + text_or_number + "}"),
           {"[]", "[1]", "[a;", "[1a]"}, {"[", "[a", "[1", "[a]b]", "[1]]", "[a;;"});
    expect(format(R"({"type": "sequence", "elements": [)" + text_or_number + R"(, {"type": "const_string", "value": "end"}]})"),
           {"end", "1end", "an enend"}, {"", "1", "endend", "end."});
}

TEST(StructuralTag, NamesThePlaceOfAFault) {
    std::string wide = R"({"a": 0)";
    for (int i = 0; i < 2000; ++i) wide += ",\"" + std::to_string(i) + "\": 0";
    const std::vector<std::pair<StructuredOutputs, std::string>> refused = {
        {tag("[]"), "structural_tag: expected an object"},
        {tag("{}"), "expected 'structures' with 'triggers', or 'format'"},
        {tag(R"({"structures": [], "triggers": ["a"]})"), "expected a list 'structures'"},
        {tag(R"({"structures": [{"begin": "a", "end": "b"}], "triggers": [""]})"), "'triggers', none empty"},
        {tag(R"({"structures": [{"begin": "a", "end": "b"}], "triggers": ["b"]})"), "no tag begins with the trigger 'b'"},
        {tag(R"({"structures": [{"begin": "a", "end": ""}, {"begin": "b", "end": ""}], "triggers": ["a"]})"),
         "triggers: the tag 'b' begins with none of them"},
        {tag(R"({"structures": [{"begin": "a", "end": "b", "schema": {"contains": 1}}], "triggers": ["a"]})"),
         "structures[0].schema: json:"},
        {format(R"({"type": "qwen_xml_parameter"})"),
         "type 'qwen_xml_parameter' is not supported (supported: any_text"},
        {format(R"x({"type": "sequence", "elements": [{"type": "regex", "pattern": "(?=a)"}]})x"),
         "format.elements[0]: regex: a lookahead"},
        {format(R"({"type": "tag", "begin": "a", "end": "b"})"), "format: expected 'content'"},
        {format(R"({"type": "any_text", "excludes": ["a"]})"), "'excludes' is not supported"},
        {tag("{"), "structural_tag: it is not JSON: "},
        {format(R"({"type": "json_schema", "json_schema": {"const": 18446744073709551617}})"),
         "structural_tag: 'const': 18446744073709551617 has more digits than are kept"},
        {tag(wide + "}"), "structural_tag: it has an object of more than 2000 members"},
    };
    for (const auto& [asked, why] : refused) {
        const std::string error = refusal(asked);
        EXPECT_NE(error.find(why), error.npos) << *asked.structural_tag << ": " << error;
    }
}

}  // namespace
}  // namespace patchbay::grammar::testing::structural_tag_test
