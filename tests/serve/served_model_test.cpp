// Chat templates and the texts of special tokens, where a model's files have them.
#include "serve/served_model.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "serve/generation_request.hpp"
#include "serve/temporary_folder.hpp"
#include "unit/weights/gguf_fixture.hpp"

namespace patchbay::serve::testing::served_model_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using nlohmann::ordered_json;

struct ModelFiles {
    TemporaryFolder folder;
    std::string given; // --chat-template

    void write(const std::string& name, const std::string& text) const {
        fs::create_directories((folder.path() / name).parent_path());
        std::ofstream(folder.path() / name, std::ios::binary) << text;
    }
    ServedModel read(const std::string& tokenizer = "") const {
        ServedModel out;
        const auto done = read_chat_templates(out, folder.path() / tokenizer, given);
        if (!done) throw std::runtime_error(done.error());
        return out;
    }
    std::string token(const std::string& name, const std::string& tokenizer = "") const { // empty: there is none
        return read(tokenizer).special_tokens[name];
    }
    // Of no messages: "the plain template, the one with tools".
    std::string texts(const std::string& tokenizer = "") const {
        const ServedModel model = read(tokenizer);
        const auto text = [](const auto& t) { return t ? *t->render(ordered_json::object()) : "none"; };
        return text(model.chat_template) + ", " + text(model.tool_template);
    }
};

constexpr const char* kListed = R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [
    {"name": "tool_use", "template": "listed with tools"}, {"name": "default", "template": "listed"}]})";

TEST(ChatTemplates, AreListedInTheConfigurationOfTheTokenizer) {
    ModelFiles m;
    m.write("tokenizer_config.json", R"({"chat_template": "one"})");
    EXPECT_EQ(m.texts(), "one, none");
    m.write("tokenizer_config.json", kListed);
    EXPECT_EQ(m.texts(), "listed, listed with tools");
    EXPECT_EQ(m.token("bos_token"), "<s>");
    EXPECT_EQ(m.token("eos_token"), "</s>");
    m.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "x"}]})");
    EXPECT_EQ(m.texts(), "none, x");
    EXPECT_EQ(m.read().no_template, "the model's only chat template is for requests with tools");
    m.write("tokenizer_config.json", "{}");
    EXPECT_EQ(m.texts(), "none, none");
    EXPECT_THAT(m.read().no_template, HasSubstr("neither chat_template.jinja nor chat_template of tokenizer_config"));
}

TEST(ChatTemplates, AreGivenAllSpecialTokensThatTheTokenizerNames) {
    ModelFiles m;
    m.write("tokenizer_config.json", R"({"eos_token": "</s>", "pad_token": null, "unk_token": {"content": "<unk>"}})");
    m.write("chat_template.jinja",
            "{{ eos_token ~ pad_token ~ unk_token ~ (sep_token is defined) }}{{ additional_special_tokens }}");
    const nlohmann::ordered_json body{{"messages", {{{"role", "user"}, {"content", "x"}}}}};
    EXPECT_EQ(render_chat(body, m.read()).text, "</s><unk>False");
    m.write("special_tokens_map.json", R"({"eos_token": "<end>", "pad_token": "<pad>",
        "additional_special_tokens": ["<a>", {"content": "<b>"}]})");
    EXPECT_EQ(render_chat(body, m.read()).text, "</s><pad><unk>False['<a>', '<b>']") << "the configuration's own first";
    auto with = body;
    with["chat_template_kwargs"] = {{"pad_token", "<mine>"}};
    EXPECT_EQ(render_chat(with, m.read()).text, "</s><mine><unk>False['<a>', '<b>']");
}

TEST(ChatTemplates, InFilesCountInsteadOfThoseListed) {
    ModelFiles m;
    m.write("tokenizer_config.json", kListed);
    m.write("additional_chat_templates/tool_use.jinja", "file with tools");
    EXPECT_EQ(m.texts(), "listed, file with tools");
    m.write("chat_template.jinja", "file");
    EXPECT_EQ(m.texts(), "file, file with tools");
    fs::remove_all(m.folder.path() / "additional_chat_templates");
    EXPECT_EQ(m.texts(), "file, none");
    m.write("given.txt", "given");
    m.given = m.folder.path() / "given.txt";
    m.write("additional_chat_templates/tool_use.jinja", "file with tools");
    EXPECT_EQ(m.texts(), "given, none") << "the one that was given, for all requests";
}

TEST(ChatTemplates, OfAGgufFileAreItsOwn) {
    const auto gguf = [] {
        weights::GgufBytes out;
        out.texts("tokenizer.ggml.tokens", {"<begin>", "<end>"}).key("tokenizer.ggml.bos_token_id", 0u);
        return out;
    };
    ModelFiles m;
    m.write("tokenizer_config.json", kListed);
    m.write("m.gguf", gguf().key("tokenizer.chat_template", "own {{ bos_token }}").with(""));
    EXPECT_EQ(m.texts("m.gguf"), "own , none");
    EXPECT_EQ(m.token("bos_token", "m.gguf"), "<begin>");
    EXPECT_EQ(m.token("eos_token", "m.gguf"), "") << "the files beside it are not of this model";
    m.write("m.gguf", gguf().key("tokenizer.chat_template", "own")
                          .key("tokenizer.chat_template.tool_use", "own with tools").with(""));
    EXPECT_EQ(m.texts("m.gguf"), "own, own with tools");
    m.write("m.gguf", gguf().with(""));
    EXPECT_EQ(m.texts("m.gguf"), "listed, listed with tools") << "what lies beside a file that has none";
    EXPECT_EQ(m.token("bos_token", "m.gguf"), "<begin>");
    EXPECT_EQ(m.token("eos_token", "m.gguf"), "</s>");
    fs::remove(m.folder.path() / "tokenizer_config.json");
    EXPECT_THAT(m.read("m.gguf").no_template, HasSubstr("neither the GGUF file"));
    m.write("m.gguf", gguf().key("tokenizer.chat_template", "{% endif %}").with(""));
    ServedModel broken;
    EXPECT_THAT(read_chat_templates(broken, m.folder.path() / "m.gguf", "").error(),
                HasSubstr("m.gguf: tokenizer.chat_template:1: "));
}

}  // namespace
}  // namespace patchbay::serve::testing::served_model_test
