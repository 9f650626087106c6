// JSON Schema: golden texts that the package jsonschema judged (make_schema_goldens.py), refusals by name, and texts
// drawn at random that must be valid by a validator of the test's own.
#include <fstream>
#include <nlohmann/json.hpp>

#include "grammar/automaton.hpp"
#include "grammar/json_schema.hpp"
#include "paths.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::json_schema_test {
namespace {

TEST(JsonSchema, AcceptsAndRefusesWhatAnotherValidatorDoes) {
    std::ifstream file(std::string(kSourceDir) + "/tests/unit/grammar/schema_goldens.json");
    const auto cases = nlohmann::json::parse(file);
    ASSERT_GT(cases.size(), 40u);
    for (const auto& one : cases) {
        const std::string schema = one["schema"];
        const auto grammar = compiled(json(schema));
        ASSERT_TRUE(grammar) << schema;
        for (const std::string text : one["accept"]) EXPECT_TRUE(accepts(grammar, text)) << schema << "\n" << text;
        for (const std::string text : one["reject"]) EXPECT_FALSE(accepts(grammar, text)) << schema << "\n" << text;
        for (const std::string text : one["narrow"])
            EXPECT_FALSE(accepts(grammar, text)) << schema << "\n" << text << "\nis generated: move it to accept";
    }
}

TEST(JsonSchema, RefusesByNameWhatItDoesNotSupport) {
    const std::vector<std::pair<std::string, std::string>> refused = {
        {R"({"not": {"format": "date"}})", "#/not: keyword 'format' is not supported under 'not'"},
        {R"({"properties": {"a": {"not": {"const": {"b": 1}}}}})", "#/properties/a: a 'not' of an object"},
        {R"({"type": "array", "uniqueItems": true, "minItems": 2})", "keyword 'uniqueItems'"},
        {R"({"allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}, {"contains": {"const": 3}},
                       {"contains": {"const": 4}}]})",
         "keyword 'contains' of more than 3 schemas"},
        {R"({"contains": {"type": "null"}, "minContains": 2, "uniqueItems": true})", "'uniqueItems' beside 'contains'"},
        {R"({"contains": {"type": "null"}, "maxContains": 300, "minItems": 300})", "too many items to count"},
        {R"({"type": "array", "const": [1], "unevaluatedItems": false})", "keyword 'unevaluatedItems'"},
        {R"({"$dynamicRef": "http://example.com/a#b"})", "only places in the schema itself"},
        {R"({"type": "text"})", "#/type: \"text\" is not a type"},
        {R"x({"type": "string", "pattern": "(?=a)"})x", "#/pattern: regex: a lookahead"},
        {R"({"$ref": "http://example.com/a"})", "only places in the schema itself"},
        {R"({"$ref": "#/$defs/none"})", "is not in the schema"},
        {R"({"$ref": "#"})", "refers to itself"},
        {R"({"allOf": [{"$ref": "#"}]})", "refers to itself"},
        {R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})", "nothing matches"},
        {R"({"type": "integer", "minimum": 3, "maximum": 2})", "nothing matches"},
        {R"({"type": "integer", "enum": ["a"]})", "nothing matches"},
        {"false", "nothing matches"},
        {R"({"type": "number", "multipleOf": 0.12345})", "#/multipleOf: is 0.12345, which takes too many"},
        {R"({"type": "number", "multipleOf": 1e-30})", "#/multipleOf: is 1e-30, which takes too many"},
        {R"({"type": "integer", "minimum": 1e60})", "more than 40 digits"},
        {R"({"type": "string", "minLength": 99999999})", "expected at most"},
        {R"({"type": "string", "minLength": -1})", "expected a whole number"},
        {R"({"type": "object", "additionalProperties": true, "minProperties": 33})", "keyword 'minProperties'"},
        {R"({"type": "object", "patternProperties": {"^[ab]$": {}}, "additionalProperties": false, "minProperties": 2})",
         "names of so few lengths"},
        {"{", "the schema is not JSON"},
        {"[]", "is not a schema"},
        {std::string(100, '[') + std::string(100, ']'), "nests lists and objects more than 64 deep"},
        {R"({"anyOf": 3})", "is not an array of schemas"},
    };
    for (const auto& [schema, why] : refused) {
        const std::string text = refusal(json(schema));
        EXPECT_NE(text.find(why), text.npos) << schema.substr(0, 100) << ": " << text;
    }
}

TEST(JsonSchema, FormatsAreAPartOfWhatTheirRfcsAllow) {
    struct Format {
        const char* name;
        std::vector<std::string> accepted, refused;
    };
    const std::vector<Format> formats = {
        {"date", {"2024-02-29", "1999-12-31"}, {"2023-02-29", "2024-13-01", "2024-1-1", "20240101"}},
        {"time", {"23:59:59Z", "08:30:00.25+01:00"}, {"24:00:00Z", "08:30Z", "08:30:00", "08:60:00Z"}},
        {"date-time", {"2024-02-29T23:59:59Z", "1985-04-12T23:20:50.52-08:00"}, {"2024-02-29 23:59:59Z", "2024-02-29"}},
        {"duration", {"P3Y6M4DT12H30M5S", "PT36H", "P4W", "P1D"}, {"P", "PT", "1D", "P1W2D", "P1S", "P1Y2D"}},
        {"email", {"ann@example.org", "a.b-c@mail.example.com"}, {"ann", "@example.org", "ann@", "a..b@example.org"}},
        {"hostname",
         {"example.org", "a", "ab", "abc", "abcd", "a-b", "a--b", "h-1.example", "ab-c", "abc--d", "ab-c-d",
          std::string(63, 'a')},
         {"-a.org", "a-.org", "a..b", "a_b", ".a", "", "ab--c", "a---b.c", "xn--a.org", "a---", "ab--",
          std::string(64, 'a')}},
        {"idn-hostname", {"example.org", "ab-c"}, {"ab--c", "xn--"}},
        {"ipv4", {"192.168.0.255", "0.0.0.0"}, {"256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4."}},
        {"ipv6", {"::", "fe80::1", "1:2:3:4:5:6:7:8"}, {"1::2::3", "1:2:3:4:5:6:7", "12345::", ":::"}},
        {"uri", {"https://example.org/a?b=c#d", "ftp://h:21/"}, {"example.org", "https://", "://a", "https:/a", "a b"}},
        {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000", "123e4567-e89b"}},
    };
    for (const Format& f : formats) {
        const auto grammar = compiled(json(R"({"type": "string", "format": ")" + std::string(f.name) + R"("})"));
        ASSERT_TRUE(grammar) << f.name;
        for (const std::string& t : f.accepted) EXPECT_TRUE(accepts(grammar, '"' + t + '"')) << f.name << ": " << t;
        for (const std::string& t : f.refused) EXPECT_FALSE(accepts(grammar, '"' + t + '"')) << f.name << ": " << t;
    }
    EXPECT_TRUE(accepts(json(R"({"$ref": "#/definitions/d", "definitions": {"d": {"const": 1}}})"), "1"));
}

TEST(JsonSchema, HoldsOnWhenALargeOneIsTooMuch) {
    std::string doubled = R"({"$ref": "#/$defs/d0", "$defs": {)"; // each refers twice to the next
    for (int i = 0; i < 25; ++i) {
        const std::string next = "#/$defs/d" + std::to_string(i + 1);
        doubled +=
            "\"d" + std::to_string(i) + R"(": {"allOf": [{"$ref": ")" + next + R"("}, {"$ref": ")" + next + "\"}]},";
    }
    EXPECT_NE(refusal(json(doubled + R"("d25": {"type": "null"}}})")).find("more than 1000 schemas"),
              std::string::npos);
    std::string ways = R"({"allOf": [)";
    for (int i = 0; i < 20; ++i) ways += R"({"anyOf": [{"type": "string"}, {"type": "integer"}]},)";
    EXPECT_NE(refusal(json(ways + "{}]}")).find("ways to combine"), std::string::npos);
    std::string wide = R"({"type": "object", "properties": {)";
    for (int i = 0; i < 400; ++i) wide += "\"p" + std::to_string(i) + R"(": {"type": "string", "maxLength": 50},)";
    EXPECT_EQ(refusal(json(wide + R"("z": {}}})")), "");
    EXPECT_NE(refusal(json(R"x({"type": "string", "pattern": "^(a|b)*a(a|b){60}$", "maxLength": 5000})x")), "");
}

TEST(JsonSchema, JudgesListedStringsByTheKeywordsAndNotByWhatIsGenerated) {
    const std::string longer(500, 'a');
    const std::vector<std::tuple<std::string, std::string, bool>> cases = {
        {R"({"format":"uri-reference","enum":["/a","/b"]})", R"("/b")", true},
        {R"({"type":"string","format":"uri","const":"urn:x:y"})", R"("urn:x:y")", true},
        {R"({"pattern":"^a","maxLength":600,"enum":["b",")" + longer + "\"]}", '"' + longer + '"', true},
        {R"({"pattern":"^a","maxLength":499,"enum":["ab",")" + longer + "\"]}", '"' + longer + '"', false},
        {R"({"pattern":"^a","enum":["b","a"]})", R"("b")", false},
        {R"({"not":{"pattern":"^a"},"enum":["b","a"]})", R"("a")", false},
        {R"({"not":{"pattern":"^a"},"enum":["b","a"]})", R"("b")", true},
        {R"({"minLength":2,"maxLength":3,"enum":["é","éé","éééé"]})", R"("é")", false},
        {R"({"minLength":2,"maxLength":3,"enum":["é","éé","éééé"]})", R"("éé")", true},
        {R"({"minLength":2,"maxLength":3,"enum":["é","éé","éééé"]})", R"("éééé")", false},
        {R"({"propertyNames":{"format":"uri","enum":["/a"]},"additionalProperties":{}})", R"({"/a":1})", true},
        {R"({"propertyNames":{"enum":["a","b"],"not":{"const":"a"}},"additionalProperties":{}})", R"({"a":1})", false}};
    for (const auto& [schema, text, valid] : cases)
        EXPECT_EQ(accepts(json(schema), text), valid) << schema.substr(0, 100) << ": " << text.substr(0, 60);
}

TEST(JsonSchema, JudgesListedNumbersByTheirValues) {
    const std::vector<std::tuple<std::string, std::string, bool>> cases = {
        {R"({"enum":[1.0,2.0],"minimum":0})", "2.0", true},
        {R"({"enum":[1.0,2.0],"minimum":1.5})", "1.0", false},
        {R"({"const":4.0,"multipleOf":2})", "4.0", true},
        {R"({"enum":[3.0,4],"multipleOf":2})", "3.0", false},
        {R"({"enum":[0.75,0.7],"multipleOf":0.25})", "0.75", true},
        {R"({"enum":[0.75,0.7],"multipleOf":0.25})", "0.7", false},
        {R"({"enum":[1,1e21],"minimum":0})", "1e+21", true},
        {R"({"enum":[7,1e21],"multipleOf":7})", "1e+21", false},
        {R"({"enum":[1,2e50],"maximum":1e60})", "2e+50", true},
        {R"({"enum":[-0.0,5],"multipleOf":2})", "-0.0", true},
        {R"({"enum":[1,2],"exclusiveMinimum":1.0})", "1", false},
        {R"({"enum":[0.123456789],"not":{"type":"integer"},"maximum":1})", "0.123456789", true},
        {R"({"enum":[9007199254740992,9007199254740993],"minimum":9007199254740993})", "9007199254740993", true},
        {R"({"enum":[9007199254740992,9007199254740993],"minimum":9007199254740993})", "9007199254740992", false},
        {R"({"enum":[3,4.0],"not":{"multipleOf":2}})", "3", true},
        {R"({"enum":[3,4.0],"not":{"multipleOf":2}})", "4.0", false}};
    for (const auto& [schema, text, valid] : cases)
        EXPECT_EQ(accepts(json(schema), text), valid) << schema << ": " << text;
}

TEST(JsonSchema, FollowsChainsOfAnyNumberOfDefinitions) {
    std::string text = R"({"$ref":"#/$defs/0","$defs":{)";
    for (int i = 0; i < 400; ++i)
        text += '"' + std::to_string(i) + R"(":{"type":"array","minItems":1,"maxItems":1,"items":{"$ref":"#/$defs/)" +
                std::to_string(i + 1) + "\"}},";
    const auto chain = compiled(json(text + R"("400":{"const":7}}})"));
    EXPECT_TRUE(accepts(chain, std::string(400, '[') + "7" + std::string(400, ']')));
    EXPECT_FALSE(accepts(chain, std::string(400, '[') + "8"));
    EXPECT_FALSE(accepts(chain, std::string(399, '[') + "7"));
}

TEST(JsonSchema, AListOfDifferentItemsIsEmptyWhereNoneIsPossible) {
    const auto none = compiled(json(R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b"],"not":{}}})"));
    EXPECT_TRUE(accepts(none, "[]"));
    EXPECT_FALSE(accepts(none, R"(["a"])"));
}

// Expressions that a schema makes, counted by the number that the next one gets.
ExprId expressions_of(const std::string& schema) {
    Rules rules;
    Work work(Automaton::kMaxWork);
    const auto root = parse_json_schema(rules, schema, Whitespace::kNone, work);
    EXPECT_TRUE(root) << root.error();
    return rules.empty();
}

TEST(JsonSchema, TranslatesAPatternOnceHoweverOftenItIsNamed) {
    const std::string text = R"({"type":"string","pattern":"^)" + std::string(500, 'a') + "$\"}";
    const auto object = [&](int members, const std::string& of) {
        std::string out;
        for (int i = 0; i < members; ++i) out += (i ? ",\"" : "\"") + std::to_string(i) + "\":" + of;
        return R"({"properties":{)" + out + R"(},"$defs":{"text":)" + text + "}}";
    };
    const std::string reference = R"({"$ref":"#/$defs/text"})";
    for (const std::string& of : {reference, text, R"({"allOf":[)" + reference + "]}"})
        EXPECT_LT(expressions_of(object(11, of)), expressions_of(object(1, of)) + 300) << of.substr(0, 60);
}

// Each would take hours, or all memory, if it were followed to its end.
TEST(JsonSchema, RefusesWhatGrowsWithoutEnd) {
    const auto list = [](int n, const std::string& of) {
        std::string out = of;
        for (int i = 1; i < n; ++i) out += "," + of;
        return "[" + out + "]";
    };
    const auto reference = [](const std::string& to) { return R"({"$ref":"#/$defs/)" + to + "\"}"; };
    const auto negated = [&](const std::string& last) { // 900 ^ 3 ways to the last one
        std::string out = R"({"not":{"$ref":"#/$defs/a"},"$defs":{"d":)" + last;
        for (const auto& [name, next] : {std::pair{"a", "b"}, {"b", "c"}, {"c", "d"}})
            out += ",\"" + std::string(name) + R"(":{"allOf":)" + list(900, reference(next)) + "}";
        return out + "}}";
    };
    EXPECT_TRUE(accepts(json(negated(R"({"minimum":3})")), "2"));
    EXPECT_FALSE(accepts(json(negated(R"({"minimum":3})")), "3"));
    EXPECT_NE(refusal(json(negated(R"({"title":"any"})"))).find("#/not: the schemas under 'not' and 'oneOf' are too"),
              std::string::npos);

    const std::string long_name(100'000, 'n');
    std::string anchors, references;
    for (int i = 0; i < 1900; ++i) {
        anchors += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"$anchor":"a)" + std::to_string(i) + "\"}";
        references += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"$ref":"#a"})";
    }
    EXPECT_NE(refusal(json(R"({"$id":"http://a/)" + long_name + R"(","$defs":{)" + anchors + "}}"))
                  .find("too long together"),
              std::string::npos);
    EXPECT_NE(refusal(json(R"({"$defs":{")" + long_name + R"(":{"$anchor":"a"}},"properties":{)" + references + "}}"))
                  .find("too long together"),
              std::string::npos);

    std::string dynamic, resources, uses;
    for (int i = 0; i < 1500; ++i) {
        const std::string n = std::to_string(i), comma = i ? "," : "";
        dynamic += comma + "\"d" + n + R"(":{"$dynamicAnchor":"d)" + n + "\"}";
        resources += comma + "\"r" + n + R"(":{"$id":"r)" + n + R"(","$dynamicAnchor":"x)" + n + "\"}";
        uses += comma + "\"p" + n + R"(":{"$ref":"#/$defs/r)" + n + "\"}";
    }
    EXPECT_NE(refusal(json(R"({"$defs":{"all":{"$defs":{)" + dynamic +
                           R"(}},"two":{"$id":"two","$dynamicAnchor":"d1","$dynamicRef":"#d1"},)" + resources +
                           R"(},"properties":{)" + uses + "}}"))
                  .find("too many $dynamicAnchor hold in too many ways"),
              std::string::npos);
}

// A validator for the schema below, by hand.
void expect_order(const std::string& text) {
    const auto order = nlohmann::json::parse(text, nullptr, false);
    ASSERT_FALSE(order.is_discarded()) << text;
    ASSERT_TRUE(order.is_object()) << text;
    EXPECT_GE(order.at("id").get<int64_t>(), 1000) << text;
    EXPECT_LE(order.at("id").get<int64_t>(), 9999) << text;
    EXPECT_TRUE(order.at("state") == "new" || order.at("state") == "sent") << text;
    const auto& lines = order.at("lines");
    EXPECT_GE(lines.size(), 1u);
    EXPECT_LE(lines.size(), 3u);
    for (const auto& line : lines) {
        EXPECT_LE(line.at("what").get<std::string>().size(), 4u * 6);
        const double price = line.at("price").get<double>();
        EXPECT_GT(price, 0) << text;
        EXPECT_LE(price, 99.5) << text;
        EXPECT_LE(line.size(), 3u);
        EXPECT_TRUE(!line.contains("part") || line["part"].is_null() || line["part"].is_object()) << text;
    }
    for (const auto& [name, value] : order.items())
        EXPECT_TRUE(name == "id" || name == "state" || name == "lines" || value.is_boolean()) << text;
}

TEST(JsonSchema, GeneratesOnlyWhatIsValid) {
    const auto grammar = compiled(json(R"({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1000, "maximum": 9999},
            "state": {"enum": ["new", "sent"]},
            "lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/line"}}
        },
        "required": ["id", "state", "lines"],
        "additionalProperties": {"type": "boolean"},
        "$defs": {"line": {"type": "object", "required": ["what", "price"], "properties": {
            "what": {"type": "string", "maxLength": 6},
            "price": {"type": "number", "exclusiveMinimum": 0, "maximum": 99.5},
            "part": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/line"}]}}}}
    })"),
                                  small());
    ASSERT_TRUE(grammar);
    size_t complete = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const Drawn drawn = draw(grammar, seed, 400);
        if (!drawn.complete) continue;
        complete += 1;
        expect_order(drawn.text);
    }
    EXPECT_GT(complete, 200u);
}

}  // namespace
}  // namespace patchbay::grammar::testing::json_schema_test
