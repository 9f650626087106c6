#include "weights/gguf_pre_tokenizers.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "text/known_patterns.hpp"

namespace patchbay::weights {
namespace {

using nlohmann::json;
using Patterns = std::vector<const char*>;

// Patterns: those of tokenizer.json of the models' publishers, which llama.cpp keeps too, some of them in another form.
// Each cuts what the one before left.
constexpr const char* kDigit = R"(\p{N})";
constexpr const char* kDigits3 = R"(\p{N}{1,3})";
constexpr const char* kEastAsian = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kEastAsianDeepSeek = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kCasedDeepSeek =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-)"
    R"(\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
    R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-)"
    R"(\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC})"
    R"(\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-)"
    R"(\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2})"
    R"(\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-)"
    R"(\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* kSignsDeepSeek =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)"
    R"(|[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
    R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F})"
    R"(\x{FE30}-\x{FE4F}]+)"
    R"(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kJais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))"
    R"(|\s{1,2}(?!\S)|\s{1})";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kMiniCpm =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
// llama.cpp has U+8C48 for U+F900, which it becomes in NFC.
constexpr const char* kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
constexpr const char* kLines = R"([^\n]+|[\n]+)";

struct Family {
    std::vector<std::string> names;
    Patterns patterns; // empty: GPT-2's alone
    bool whole_words = false, begins = false, nfc = false;
};

const std::vector<Family>& families() {
    using text::kGpt2Pattern, text::kKimiPattern, text::kLlama3Pattern, text::kO200kPattern, text::kQwen2Pattern;
    const Patterns deepseek3{kDigits3, kEastAsian, kDeepSeek3};
    static const std::vector<Family> all{
        {{"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "gigachat",
          "a.x-4.0", "mellum", "modern-bert", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de"},
         {kGpt2Pattern}},
        {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
         {kDigit, kGpt2Pattern}},
        {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}},
        {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
         {kLlama3Pattern},
         true,
         true},
        {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3Pattern}}, // dbrx: Phi 4
        {{"qwen2", "deepseek-r1-qwen"}, {kQwen2Pattern}, false, false, true},
        {{"kormo", "f2llmv2", "hunyuan", "solar-open", "megrez", "stablelm2", "grok-2"}, {kQwen2Pattern}},
        {{"qwen35"}, {kQwen35}},
        {{"ufakzeka"}, {kUfakzeka}},
        {{"laguna"}, {kLines, kQwen2Pattern}},
        {{"deepseek-llm"},
         {R"([\r\n])", kCasedDeepSeek, kSignsDeepSeek, R"(\s+\z)", kEastAsianDeepSeek, R"(\p{N}+)"}},
        {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kEastAsianDeepSeek, kDigit}},
        {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, deepseek3},
        {{"spark2_5"}, {kDigits3, kEastAsian, kSpark, kDigit}},
        {{"youtu"}, {kYoutuScripts, kYoutu}, true},
        {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
        {{"viking"}, {kBloom, kDigit}},
        {{"tekken"}, {kTekken}, true, true},
        {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kO200kPattern}},
        {{"tiny_aya", "cohere2moe"}, {R"(\d{1,3}(?=(?:\d{3})*\b))", kO200kPattern}},
        {{"kimi-k2"}, {kKimiPattern}},
        {{"jais-2"}, {kJais2}},
        {{"superbpe"}, {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}},
        {{"bailingmoe", "bailingmoe2", "llada-moe"}, {kBailing}},
        {{"seed-coder"}, {kSeedCoder}},
        {{"exaone-moe"}, {kExaoneMoe}},
        {{"minicpm5"}, {kDigits3, kMiniCpm}, true},
        {{"afmoe"}, {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))", kAfmoeScripts, kDeepSeek3}},
        {{"chameleon"},
         {R"(<sentinel:[0-9]+>)", R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)", R"(([\t\n]|    |  ))", kDigit,
          R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern},
         false,
         true},
    };
    return all;
}

struct Refused {
    const char *name, *why;
};
constexpr const char* kEmbeds = "its models make embeddings, not text";
constexpr const char* kCharacters = "its words are characters with byte fallback, not bytes";
constexpr Refused kRefused[] = {{"default", "it says that the converter did not know how text is split"},
                                {"whitespace", kEmbeds},
                                {"roberta-bpe", kEmbeds},
                                {"jina-v1-en", kEmbeds},
                                {"jina-v2-code", kEmbeds},
                                {"granite-embed-multi-97m", kEmbeds},
                                {"granite-embed-multi-311m", kEmbeds},
                                {"gemma4", kCharacters},
                                {"sarvam-moe", kCharacters}};

json pre_tokenizer_of(const Patterns& patterns) {
    json steps = json::array();
    for (const char* const pattern : patterns)
        steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}});
    steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

}  // namespace

Result<GgufPreTokenizer> gguf_pre_tokenizer(const std::string& name) {
    std::vector<std::string> known;
    for (const Family& family : families()) {
        known.insert(known.end(), family.names.begin(), family.names.end());
        if (std::find(family.names.begin(), family.names.end(), name) == family.names.end()) continue;
        return GgufPreTokenizer{family.nfc ? json{{"type", "NFC"}} : json(), pre_tokenizer_of(family.patterns),
                                family.whole_words, family.begins};
    }
    for (const Refused& refused : kRefused)
        if (name == refused.name) return unsupported("is not supported: " + std::string(refused.why));
    return unsupported("is not known" + did_you_mean(name, known) + "; docs/tokenizers.md lists the names that are");
}

}  // namespace patchbay::weights
