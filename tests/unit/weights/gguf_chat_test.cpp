// What GGUF files say of texts and chats: tokens that end an output, and templates.
#include "weights/gguf_chat.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "must.hpp"
#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights::gguf_chat_test {
namespace {

using testing::ElementsAre;

class GgufChats : public ModelFolder {};

TEST_F(GgufChats, end_an_output_at_all_tokens_that_llama_cpp_ends_it_at) {
    const auto ends = [&](const std::vector<std::string>& tokens, GgufBytes bytes) {
        write("m.gguf", bytes.texts("tokenizer.ggml.tokens", tokens).with(std::string(2048, '\0')));
        std::vector<std::string> out;
        const auto config = must(read_model_config(folder / "m.gguf"));
        for (const auto& [key, value] : config)
            if (key.starts_with("eos_token_id")) out.push_back(value);
        std::ranges::sort(out);
        return out;
    };
    const auto with_eos = [&](uint32_t id) { return tiny_llama().key("tokenizer.ggml.eos_token_id", id); };
    EXPECT_THAT(ends({"a", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "b"}, with_eos(1)),
                ElementsAre("1", "2", "3"));
    EXPECT_THAT(ends({"a", "<end_of_turn>", "b", "c"}, with_eos(3).key("tokenizer.ggml.eom_token_id", 2u)),
                ElementsAre("1", "2", "3"));
    EXPECT_THAT(ends({"<|file_sep|>", "<|endoftext|>"}, with_eos(1)), ElementsAre("0", "1"));
    EXPECT_THAT(ends({"a", "<|end|>"}, with_eos(0)), ElementsAre("0", "1"));
    EXPECT_THAT(ends({"<|return|>", "<|end|>", "<|call|>"}, with_eos(0)), ElementsAre("0", "2"))
        << "<|end|> ends a part of a message";
    const auto control = [&](const std::vector<std::string>& tokens, int32_t type) {
        std::string types;
        for (size_t i = 0; i < tokens.size(); ++i) types += bytes_of(type);
        return ends(tokens, tiny_llama().array("tokenizer.ggml.token_type", GgufType::kI32, tokens.size(), types));
    };
    EXPECT_THAT(control({"a", "</s>", "[PAD]"}, 3), ElementsAre("1", "2"));
    EXPECT_THAT(control({"a", "</s>", "[PAD]"}, 1), ElementsAre()) << "plain text";
    EXPECT_THAT(control({"<eos>", "</s>", "<|tool_response>"}, 3), ElementsAre("0", "2"));
    EXPECT_THAT(ends({"a", "b", "c", "d", "e", "f", "g", "h", "<|im_end|>"}, with_eos(0)), ElementsAre("0"))
        << "the model has no row for it";
}

TEST_F(GgufChats, say_what_templates_of_chats_need) {
    const auto chat = [&](GgufBytes bytes) {
        write("m.gguf", bytes.texts("tokenizer.ggml.tokens", {"a", "<s>", "</s>"}).with(std::string(2048, '\0')));
        return read_gguf_chat(folder / "m.gguf");
    };
    const auto none = must(chat(tiny_llama()));
    EXPECT_EQ(none.chat_template + none.tool_template + none.bos_token + none.eos_token, "");
    GgufBytes with_all = tiny_llama();
    with_all.key("tokenizer.chat_template", "plain").key("tokenizer.chat_template.tool_use", "tools");
    with_all.key("tokenizer.ggml.bos_token_id", 1u).key("tokenizer.ggml.eos_token_id", 2u);
    const auto all = must(chat(with_all));
    EXPECT_EQ(all.chat_template, "plain");
    EXPECT_EQ(all.tool_template, "tools");
    EXPECT_EQ(all.bos_token, "<s>");
    EXPECT_EQ(all.eos_token, "</s>");
    const std::string at = (folder / "m.gguf").string() + ": ";
    EXPECT_EQ(chat(tiny_llama().key("tokenizer.ggml.bos_token_id", 3u)).error(),
              at + "tokenizer.ggml.bos_token_id is 3, expected a token id below 3");
    EXPECT_EQ(chat(tiny_llama().key("tokenizer.chat_template", 7u)).error(),
              at + "tokenizer.chat_template is 7, expected a string of at most 4194304 bytes");
}

}  // namespace
}  // namespace patchbay::weights::gguf_chat_test
