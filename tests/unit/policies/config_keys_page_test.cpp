// docs/config-keys.md is what the tables of the model plugins say. PATCHBAY_WRITE_PAGES=1 writes it anew.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "../plugins/model/bamba/keys.hpp"
#include "../plugins/model/cohere/keys.hpp"
#include "../plugins/model/eagle/keys.hpp"
#include "../plugins/model/falcon/keys.hpp"
#include "../plugins/model/gemma/keys.hpp"
#include "../plugins/model/gpt2/keys.hpp"
#include "../plugins/model/gpt_neox/keys.hpp"
#include "../plugins/model/gpt_oss/keys.hpp"
#include "../plugins/model/granite/keys.hpp"
#include "../plugins/model/llama/keys.hpp"
#include "../plugins/model/medusa/keys.hpp"
#include "../plugins/model/mixtral/keys.hpp"
#include "../plugins/model/olmo2/keys.hpp"
#include "../plugins/model/opt/keys.hpp"
#include "../plugins/model/phi/keys.hpp"
#include "../plugins/model/phi3/keys.hpp"
#include "../plugins/model/qwen/keys.hpp"
#include "../plugins/model/qwen2_moe/keys.hpp"
#include "../plugins/model/qwen3_moe/keys.hpp"
#include "../plugins/model/smollm3/keys.hpp"
#include "../plugins/model/stablelm/keys.hpp"
#include "../plugins/model/starcoder2/keys.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::policies::config_keys_page_test {
namespace {

using namespace config_keys;

struct Family {
    const char* title;
    std::span<const Keys> tables;
};

const Family kFamilies[] = {
    {"`llama`: LlamaForCausalLM", kLlamaTables},
    {"`llama`: MistralForCausalLM, MinistralForCausalLM, and `text_config` of Mistral3ForConditionalGeneration",
     kMistralTables},
    {"`llama`: Mistral3ForConditionalGeneration", kMistral3Tables},
    {"`qwen`: Qwen2ForCausalLM", kQwen2Tables},
    {"`qwen`: Qwen3ForCausalLM", kQwen3Tables},
    {"`gpt2`: GPT2LMHeadModel", kGpt2Tables},
    {"`opt`: OPTForCausalLM", kOptTables},
    {"`phi3`: Phi3ForCausalLM", kPhi3Tables},
    {"`gemma`: GemmaForCausalLM", kGemma1Tables},
    {"`gemma`: Gemma2ForCausalLM", kGemma2Tables},
    {"`gemma`: Gemma3ForCausalLM, and `text_config` of Gemma3ForConditionalGeneration", kGemma3Tables},
    {"`gemma`: Gemma3ForConditionalGeneration", kGemma3VisionTables},
    {"`mixtral`: MixtralForCausalLM", kMixtralTables},
    {"`qwen3_moe`: Qwen3MoeForCausalLM", kQwen3MoeTables},
    {"`bamba`: BambaForCausalLM", kBambaTables},
    {"`gpt_neox`: GPTNeoXForCausalLM", kGptNeoxTables},
    {"`falcon`: FalconForCausalLM", kFalconTables},
    {"`stablelm`: StableLmForCausalLM", kStableLmTables},
    {"`phi`: PhiForCausalLM", kPhiTables},
    {"`starcoder2`: Starcoder2ForCausalLM", kStarCoder2Tables},
    {"`cohere`: CohereForCausalLM", kCohereTables},
    {"`cohere`: Cohere2ForCausalLM", kCohere2Tables},
    {"`olmo2`: Olmo2ForCausalLM", kOlmo2Tables},
    {"`granite`: GraniteForCausalLM", kGraniteTables},
    {"`smollm3`: SmolLM3ForCausalLM", kSmolLm3Tables},
    {"`qwen2_moe`: Qwen2MoeForCausalLM", kQwen2MoeTables},
    {"`gpt_oss`: GptOssForCausalLM", kGptOssTables},
    {"`eagle`: EagleLlamaForCausalLM", kEagleTables},
    {"`medusa`: MedusaModel", kMedusaTables},
};

bool is(const Keys& table, std::span<const ConfigKey> shared) { return table.data() == shared.data(); }

std::string in_words(const ConfigKey& key) {
    const std::string note = key.note.empty() ? "" : ": " + std::string(key.note);
    switch (key.use) {
        case ConfigKey::Use::kIgnores:
            return key.note.empty() ? "no effect"
                                    : "not read, warned about" +
                                          (key.only.empty() ? "" : " unless `" + std::string(key.only) + "`") + note;
        case ConfigKey::Use::kRequires:
        case ConfigKey::Use::kRequiresEach:
            return key.only.empty() ? "refused" + note : "only `" + std::string(key.only) + "`" + note;
        default: return "read";
    }
}

void write_rows(std::ostream& out, const Keys& table) {
    out << "\n| key | |\n|---|---|\n";
    for (const ConfigKey& key : table) out << "| `" << key.name << "` | " << in_words(key) << " |\n";
}

std::string page() {
    std::ostringstream out;
    out << "# Keys of config.json\n\n"
           "This page says what each model plugin does with each key of its `config.json`.\n\n"
           "- *read*: the key has the effect that it has in transformers 5.\n"
           "- *no effect*: the key does not change logits, in transformers either.\n"
           "- *only*: another value, except null, is refused with the key's name.\n"
           "- *not read, warned about*: the key is ignored, with a warning when the model is loaded.\n"
           "- A key that is in no table gives a warning when the model is loaded.\n\n"
           "Where transformers 4.57 and 5 differ, the plugins do as 5. The tables are the plugins' own\n"
           "(`plugins/model/*/keys.hpp`), and a test writes this page from them. Another test changes every key of\n"
           "small models and compares each result with transformers' (`tests/golden/config_keys_test.cpp`).\n";
    const std::pair<const char*, Keys> shared[] = {{"All models", kCommonKeys},
                                                   {"Decoders", kDecoderKeys},
                                                   {"Rotary positions", kRopeKeys},
                                                   {"Without windows", kNoWindowKeys}};
    for (const auto& [title, table] : shared) {
        out << "\n## " << title << "\n";
        write_rows(out, table);
    }
    for (const Family& family : kFamilies) {
        out << "\n## " << family.title << "\n\nAlso:";
        const char* separator = " ";
        for (const auto& [title, table] : shared)
            for (const Keys& of_family : family.tables)
                if (is(of_family, table)) out << std::exchange(separator, ", ") << title;
        out << ".\n";
        for (const Keys& table : family.tables) {
            bool own = true;
            for (const auto& [title, other] : shared) own = own && !is(table, other);
            if (own) write_rows(out, table);
        }
    }
    return out.str();
}

TEST(ConfigKeysPage, SaysWhatTheTablesSay) {
    const std::string file = std::string(kSourceDir) + "/docs/config-keys.md";
    if (std::getenv("PATCHBAY_WRITE_PAGES")) std::ofstream(file) << page();
    EXPECT_EQ(file_text(file), page())
        << "PATCHBAY_WRITE_PAGES=1 test_policies --gtest_filter=ConfigKeysPage.* writes it";
}

}  // namespace
}  // namespace patchbay::policies::config_keys_page_test
