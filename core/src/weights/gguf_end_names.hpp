// Tokens that end an output, by their names. A GGUF file has the ids of few of them, so llama.cpp knows them by name,
// and these are its names: of ends of turns and texts, and of what models of code write after a file.
#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>

namespace patchbay::weights {

// Of whatever type. Some files give these the type of plain text, in which no prompt would ever find them.
inline bool ends_output(std::string_view token) {
    constexpr std::string_view kNames[] = {
        "<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",         "<|end|>",         "<|return|>",    "<|call|>",
        "<|calls|>",     "<|flush|>",     "<EOT>",              "_<EOT>",          "<|endoftext|>", "<|end_of_text|>",
        "<turn|>",       "<end_of_turn>", "<end_of_utterance>", "<|tool_response>", "<|fim_pad|>",  "<|fim_repo|>",
        "<|repo_name|>", "<|file_sep|>"};
    return std::ranges::find(kNames, token) != std::end(kNames);
}

// If its type is control: vocabularies that were made of web pages have some of these as plain text.
inline bool ends_output_if_control(std::string_view token) {
    constexpr std::string_view kNames[] = {"</s>",  "<eos>", "[EOS]",  "[EOT]",      "<fim-pad>", "<fim_pad>",
                                           "<PAD>", "[PAD]", "<REPO>", "<fim-repo>", "<reponame>"};
    return std::ranges::find(kNames, token) != std::end(kNames);
}

}  // namespace patchbay::weights
