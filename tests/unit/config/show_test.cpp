#include <nlohmann/json.hpp>

#include "config/show.hpp"
#include "unit/config/config_fixture.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::config::show_test {
namespace {

using Show = ConfigFiles;
using nlohmann::json;

const char* kBusy = "model: {path: model, dtype: bf16}\n"
                    "engine: {kv_cache_memory: 1.5GiB, watermark: 0.05, num_speculative_tokens: 2}\n"
                    "scheduler: {plugin: sjf, ageing: 2.5e-3}\nproposer: ngram\n";

TEST_F(Show, each_value_has_its_origin_behind_it) {
    const std::string text =
        show_yaml(load("model: model\nengine: {seed: 7}\n", {{"engine.threads", "2", "--threads"}}).effective);
    EXPECT_THAT(text, ::testing::HasSubstr("\n  seed: 7                                        # a.yaml:2:16\n"));
    EXPECT_THAT(text,
                ::testing::HasSubstr("\n  threads: 2                                     # command line --threads\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  kv_cache_memory: 256MiB                        # default\n"));
    EXPECT_THAT(text,
                ::testing::HasSubstr("\nscheduler:\n  plugin: fcfs                                   # default\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("\nproposer: none "));
}

TEST_F(Show, plugin_defaults_are_shown_and_texts_quoted_where_needed) {
    const std::string text = show_yaml(load(kBusy).effective);
    EXPECT_THAT(text, ::testing::HasSubstr("\n  ageing: 2.5e-3                                 # a.yaml:3:34\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  name: \"a: b # c\"                               # default\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  kv_cache_memory: 1536MiB "));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  dtype: bfloat16 "));
}

TEST_F(Show, what_is_shown_reads_back_as_the_same_configuration) {
    const std::vector<std::string> inputs{
        "model: model\n", kBusy,
        "model: {load_format: dummy, tokenizer: none, shape: {architectures: [A, \"1\"], eps: 1e-5, \"odd key: #\": "
        "\"null\", none: ~, deep: {a: [[1], {b: 2}]}, text: \"a\\nb\\tc\\u00e9\"}}\n",
        "model: {load_format: dummy, tokenizer: none, shape: {\U0001f680: "
        "\"\\\\ud83d \\x7f \\x85 \u202e \ufeff \U0010ffff\"}}\n"};
    for (const std::string& input : inputs) {
        const Loaded first = load(input);
        const Loaded second = load(show_yaml(first.effective));
        EXPECT_EQ(first.config, second.config) << show_yaml(first.effective);
        EXPECT_EQ(json::parse(show_json(first.effective))["values"],
                  json::parse(show_json(second.effective))["values"]);
    }
}

TEST_F(Show, the_output_means_the_same_from_another_folder) {
    const Loaded first = load("model: model\n");
    write("far/away/b.yaml", show_yaml(first.effective));
    const auto second = load_engine_config("far/away/b.yaml", registry());
    ASSERT_TRUE(second) << second.error();
    EXPECT_EQ(first.config, second->config);
}

TEST_F(Show, json_has_typed_values_and_origins) {
    const json j = json::parse(show_json(load(kBusy).effective));
    EXPECT_EQ(j["values"]["engine"]["max_num_seqs"], 64);
    EXPECT_EQ(j["values"]["engine"]["enable_prefix_caching"], true);
    EXPECT_EQ(j["values"]["scheduler"]["ageing"], 0.0025);
    EXPECT_EQ(j["values"]["model"]["plugin"], "auto");
    EXPECT_EQ(j["origins"]["engine.watermark"], "a.yaml:2:46");
    EXPECT_EQ(j["origins"]["scheduler.first"], "default");
}

void expect_every_key(const std::vector<KeyInfo>& keys, const json& schema) {
    for (const KeyInfo& key : keys) {
        ASSERT_TRUE(schema["properties"].contains(key.name)) << key.name;
        const json& property = schema["properties"][key.name];
        EXPECT_FALSE(property["description"].get<std::string>().empty()) << key.name;
        if (key.type == ValueType::kMap)
            expect_every_key(key.children, property.contains("anyOf") ? property["anyOf"][1] : property);
    }
}

TEST_F(Show, the_json_schema_names_every_key_and_every_plugins_own) {
    const json schema = json::parse(json_schema(registry()));
    EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    EXPECT_TRUE(schema["properties"].contains("include"));
    EXPECT_EQ(schema["additionalProperties"], false);
    expect_every_key(engine_config_table(registry()).keys(), schema);
    EXPECT_EQ(
        schema["properties"]["engine"]["properties"]["max_num_seqs"],
        json::parse(
            R"j({"type": "integer", "minimum": 1, "maximum": 65536, "description": "sequences that run at once (sequences)", "default": 64})j"));
    const json& word = schema["properties"]["scheduler"]["anyOf"][0]["enum"];
    EXPECT_THAT(word, ::testing::Contains(json("sjf")));
    bool found = false;
    for (const json& rule : schema["properties"]["scheduler"]["anyOf"][1]["allOf"]) {
        if (rule["if"]["properties"]["plugin"]["const"] != "sjf") continue;
        EXPECT_EQ(rule["if"]["required"], json::array({"plugin"}));
        EXPECT_EQ(rule["then"]["properties"]["ageing"]["default"], 50);
        EXPECT_EQ(rule["then"]["properties"]["first"]["enum"], json::array({"short", "long"}));
        EXPECT_EQ(rule["then"]["additionalProperties"], false);
        found = true;
    }
    EXPECT_TRUE(found);
}

TEST_F(Show, the_schema_of_a_file_with_further_keys_has_them_besides) {
    const KeyInfo further{.name = "workload", .type = ValueType::kMap, .description = "what is asked"};
    const json schema = json::parse(json_schema(registry(), "Patchbay experiment", {further}));
    EXPECT_EQ(schema["title"], "Patchbay experiment");
    EXPECT_TRUE(schema["properties"].contains("workload"));
    EXPECT_TRUE(schema["properties"].contains("engine"));
}

// ---- documentation ----

std::string range_of(const KeyInfo& key) {
    if (key.type == ValueType::kEnum) return expected_text(key);
    if (!key.min || !key.max) return key.min ? "≥ " + print_float(*key.min) : "";
    const auto shown = [&](double x) {
        return key.type == ValueType::kBytes ? print_bytes(static_cast<uint64_t>(x))
                                             : std::to_string(static_cast<int64_t>(x));
    };
    return (key.type == ValueType::kFloat ? print_float(*key.min) + " to " + print_float(*key.max)
                                          : shown(*key.min) + " to " + shown(*key.max)) +
           (key.unit.empty() || key.type == ValueType::kBytes ? "" : " " + key.unit);
}

std::string rows(const std::vector<KeyInfo>& keys, const std::string& prefix) {
    std::string out;
    for (const KeyInfo& key : keys) {
        const auto& given = key.default_value;
        const std::string shown = !given ? "" : given->empty() ? "empty" : "`" + *given + "`";
        if (key.type == ValueType::kMap) out += rows(key.children, prefix + key.name + ".");
        else
            out += "| `" + prefix + key.name + "` | " + shown + " | " + range_of(key) + " | " + key.description +
                   " |\n";
    }
    return out;
}

TEST_F(Show, the_documentation_has_a_row_of_every_key) {
    const std::string page = file_text(std::string(kSourceDir) + "/docs/configuration.md");
    EXPECT_TRUE(page.find(rows(engine_config_table(registry()).keys(), "")) != std::string::npos)
        << "docs/configuration.md should hold exactly these rows:\n"
        << rows(engine_config_table(registry()).keys(), "");
}

}  // namespace
}  // namespace patchbay::config::show_test
