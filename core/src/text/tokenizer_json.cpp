#include "text/tokenizer_json.hpp"

#include <nlohmann/json.hpp>

#include "text/json_fields.hpp"
#include "text/model_json.hpp"
#include "text/pipeline_tokenizer.hpp"
#include "text/post_processor.hpp"
#include "text/tokenizer_config.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

Result<std::shared_ptr<const Tokenizer>> build(const json& tokenizer, const json& config, NamedTokens named) {
    PB_TRY(PreTokenizer pre_tokenizer, PreTokenizer::from_json(member(tokenizer, "pre_tokenizer")));
    PB_TRY(Decoder decoder, Decoder::from_json(member(tokenizer, "decoder"), pre_tokenizer.byte_level()));
    PB_TRY(Normalizer normalizer, Normalizer::from_json(member(tokenizer, "normalizer")));
    Vocabulary vocabulary;
    const Alphabet alphabet = pre_tokenizer.byte_level() ? Alphabet::kBytes : Alphabet::kCharacters;
    PB_TRY(auto model, read_model(member(tokenizer, "model"), alphabet, vocabulary));
    PB_TRY(auto added, read_added_tokens(member(tokenizer, "added_tokens")));
    PB_CHECK(add_listed_tokens(config, vocabulary, added));
    add_named_tokens(config, vocabulary, named, added);
    auto surround = read_post_processor(member(tokenizer, "post_processor"));
    if (!surround) return prefixed("post_processor", surround.failure());
    PipelineTokenizer::Parts parts{std::move(vocabulary),      std::move(model),   std::move(normalizer),
                                   std::move(pre_tokenizer),   std::move(decoder), std::move(surround->prefix),
                                   std::move(surround->suffix)};
    PB_CHECK(parts.add(std::move(added)));
    PB_CHECK(apply_config(config, parts));
    return PipelineTokenizer::create(std::move(parts));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> tokenizer_from_json(const json& tokenizer, const json& config,
                                                             const std::string& where, NamedTokens named) {
    auto built = build(tokenizer, config, named);
    if (!built) return prefixed("the tokenizer of " + where, built.failure());
    return built;
}

}  // namespace patchbay::text
