#include "text/normalizer.hpp"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <nlohmann/json.hpp>

namespace patchbay::text {

Result<Normalizer> Normalizer::from_json(const nlohmann::json& part) {
    Normalizer out;
    if (auto added = out.add(part); !added) return fail("normalizer: " + added.error());
    return out;
}

Result<> Normalizer::add(const nlohmann::json& part) {
    if (part.is_null()) return {};
    const auto type = part.is_object() ? part.find("type") : part.end();
    const std::string name = type != part.end() && type->is_string() ? type->get<std::string>() : "";
    if (name == "NFC")
        forms_.push_back(Form::kNfc);
    else if (name == "NFD")
        forms_.push_back(Form::kNfd);
    else if (name == "NFKC")
        forms_.push_back(Form::kNfkc);
    else if (name == "NFKD")
        forms_.push_back(Form::kNfkd);
    else if (name == "Sequence") {
        const auto parts = part.find("normalizers");
        if (parts == part.end() || !parts->is_array()) return fail("Sequence has no list 'normalizers'");
        for (const auto& each : *parts) PB_CHECK(add(each));
    } else {
        return fail("type '" + name + "' is not supported (supported: NFC, NFD, NFKC, NFKD, Sequence)");
    }
    return {};
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage) const {
    for (const Form form : forms_) {
        UErrorCode error = U_ZERO_ERROR;
        const icu::Normalizer2* normalizer = form == Form::kNfc    ? icu::Normalizer2::getNFCInstance(error)
                                             : form == Form::kNfd  ? icu::Normalizer2::getNFDInstance(error)
                                             : form == Form::kNfkc ? icu::Normalizer2::getNFKCInstance(error)
                                                                   : icu::Normalizer2::getNFKDInstance(error);
        if (U_FAILURE(error)) return text; // ICU without its data
        const icu::StringPiece piece(text.data(), static_cast<int32_t>(text.size()));
        if (normalizer->isNormalizedUTF8(piece, error) && U_SUCCESS(error)) continue;
        std::string normalized;
        icu::StringByteSink<std::string> sink(&normalized, piece.size());
        error = U_ZERO_ERROR;
        normalizer->normalizeUTF8(0, piece, sink, nullptr, error);
        if (U_FAILURE(error)) return text;
        storage = std::move(normalized);
        text = storage;
    }
    return text;
}

}  // namespace patchbay::text
