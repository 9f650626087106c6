// /v1/embeddings: what a request asks for, and its answer.
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

std::string numbers(const std::vector<float>& values) { // a JSON list; each the shortest that reads back the same
    std::string out = "[";
    char digits[32];
    for (const float value : values) {
        if (out.size() > 1) out += ',';
        out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }
    return out + "]";
}

std::string base64(const std::vector<float>& values) {
    static_assert(std::endian::native == std::endian::little, "clients read little-endian f32");
    const size_t bytes = values.size() * sizeof(float);
    std::string out((bytes + 2) / 3 * 4 + 1, '\0'); // it writes a NUL after them
    const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                        reinterpret_cast<const unsigned char*>(values.data()), static_cast<int>(bytes));
    out.resize(static_cast<size_t>(written));
    return out;
}

void scale_to_length_1(std::vector<float>& values) {
    double squares = 0;
    for (const float x : values) squares += double{x} * double{x};
    const double length = std::max(std::sqrt(squares), 1e-12); // as torch.nn.functional.normalize
    for (float& x : values) x = static_cast<float>(double{x} / length);
}

class EmbeddingReply final : public Reply {
  public:
    EmbeddingReply(const GenerationRequest& request, const ServedModel& model, std::string id, int64_t created)
        : Reply(request, model, std::move(id), created, "list") {}

    // There are no streams of them.
    void add_events(std::string&, uint32_t, std::vector<Choice>&, const engine::RequestOutput&) const override {}

    std::string whole(const std::vector<Choice>& choices, const Usage& usage) const override {
        std::string out = "{\"id\":" + json_string(id_) + ",\"object\":\"list\",\"created\":" +
                          std::to_string(created_) + ",\"model\":" + json_string(request_.model) + ",\"data\":[";
        for (size_t i = 0; i < choices.size(); ++i)
            out += (i > 0 ? ",{\"object\":\"embedding\",\"index\":" : "{\"object\":\"embedding\",\"index\":") +
                   std::to_string(i) + ",\"embedding\":" + shown(choices[i].embedding) + "}";
        return out + "],\"usage\":" + dumped(usage_json(usage)) + "}";
    }

  private:
    std::string shown(std::vector<float> values) const {
        const EmbeddingFormat& format = request_.embedding;
        if (format.dimensions > 0) values.resize(std::min<size_t>(values.size(), format.dimensions));
        if (format.normalize) scale_to_length_1(values);
        return format.base64 ? "\"" + base64(values) + "\"" : numbers(values);
    }
};

void read_dimensions(Fields& f, const ServedModel& model, EmbeddingFormat& out) {
    std::optional<uint32_t> wanted;
    f.read("dimensions", wanted);
    if (!wanted || *wanted == model.hidden_size) return;
    const Pooler& pooler = model.pooler;
    const auto& allowed = pooler.dimensions;
    if (!pooler.is_matryoshka)
        return f.refuse("dimensions", "the model was not trained for shorter embeddings (matryoshka), expected " +
                                          std::to_string(model.hidden_size) + " or none",
                        StatusCode::kUnsupported);
    if (*wanted == 0 || *wanted > model.hidden_size)
        return f.refuse("dimensions", "is " + std::to_string(*wanted) + ", expected 1 to " +
                                          std::to_string(model.hidden_size));
    if (!allowed.empty() && std::ranges::find(allowed, *wanted) == allowed.end()) {
        std::string list;
        for (const uint32_t d : allowed) list += (list.empty() ? "" : ", ") + std::to_string(d);
        return f.refuse("dimensions", "is " + std::to_string(*wanted) + ", expected one of " + list);
    }
    out.dimensions = *wanted;
}

}  // namespace

std::unique_ptr<Reply> embedding_reply(const GenerationRequest& request, const ServedModel& model, std::string id,
                                       int64_t created) {
    return std::make_unique<EmbeddingReply>(request, model, std::move(id), created);
}

ReadRequest read_embedding(const Json& body, const ServedModel& model) {
    ReadRequest out;
    GenerationRequest& r = out.request;
    r.kind = ReplyKind::kEmbedding;
    if ((out.refusal = read_model_name(body, model, r))) return out;
    if (model.pooler.refusal) {
        out.refusal = Refusal{prefixed("embeddings", *model.pooler.refusal), ""};
        return out;
    }
    Fields f(body);
    r.embedding.pooling = model.pooler.pooling;
    r.embedding.normalize = model.pooler.normalize;
    f.read("normalize", r.embedding.normalize);
    std::string format = "float";
    f.read("encoding_format", format);
    r.embedding.base64 = format == "base64";
    if (!r.embedding.base64 && format != "float")
        f.refuse("encoding_format", "got " + json_string(format) + ", expected float or base64");
    read_dimensions(f, model, r.embedding);
    f.read("priority", r.priority);
    f.read("deadline_ms", r.deadline_ms);
    f.read("cache_salt", r.cache_salt);
    if ((out.refusal = f.refusal())) return out;
    if ((out.refusal = read_prompts(body, model, r))) return out;
    out.refusal = fit_prompts(body, model, r);
    return out;
}

}  // namespace patchbay::serve
