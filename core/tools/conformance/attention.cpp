// The attention's checks: that it says no with a reason, computes what attention is, reads nothing that was not
// appended, and gives a token the same bits in every batch.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/attention_case.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kPages = 61; // odd, see Pages::page_of

// The device that it names, unless that is "cpu". Null: that, or why it cannot be had.
const host::Component* device_of(Subject& subject, std::string& why) {
    const char* const name = subject.table<pb_attention>().device;
    if (!name || name == std::string_view("cpu")) return nullptr;
    return subject.device(name, why);
}

// The shapes that are tried; a backend may refuse any of them with a reason.
std::vector<Shape> shapes(const host::Component* device) {
    std::vector<Shape> out = {{4, 2, 64, 16, 0, PB_F32},
                              {4, 4, 32, 8, 0, PB_F32},
                              {8, 1, 64, 16, 0, PB_BF16},
                              {4, 2, 128, 32, 0, PB_F32},
                              {2, 2, 16, 4, 0, PB_F32},
                              {4, 2, 64, 16, 0, PB_FP8},
                              {4, 2, 64, 16, 0, PB_I8}};
    for (Shape& s : out) s.device = device;
    return out;
}

struct Answer {
    pb_status status;
    std::string reason;
    pb_attention_layout layout = sized<pb_attention_layout>();
    bool within_bounds = true;
};

Answer describe(const host::Component& c, const pb_attention_spec& spec) {
    Answer a{};
    LentMemory memory;
    pb_attention_layout* const layout = memory.lend(sized<pb_attention_layout>());
    a.status = static_cast<const pb_attention*>(c.type().vtable)->describe(c.self(), memory.lend(spec), layout);
    a.layout = *layout;
    a.within_bounds = memory.end_call() && a.layout.struct_size == sizeof a.layout;
    if (a.status != PB_OK) a.reason = c.check(a.status, "describe").error();
    return a;
}

std::vector<Shape> supported(const host::Component& c, const host::Component* device) {
    std::vector<Shape> out;
    for (const Shape& s : shapes(device))
        if (describe(c, s.spec()).status == PB_OK) out.push_back(s);
    return out;
}

bool has_reason(const Answer& a) {
    return !a.reason.ends_with(": not supported");
}  // the host's own word where none was given

Outcome describes(Subject& subject) {
    std::string why;
    PB_TRY(auto component, subject.make());
    for (const Shape& s : shapes(device_of(subject, why))) {
        const Answer a = describe(*component, s.spec());
        if (a.status == PB_UNSUPPORTED) continue;
        if (a.status != PB_OK)
            return fail("it answers what it may not do by status " + std::to_string(a.status) +
                        ", expected PB_UNSUPPORTED and a reason: " + a.reason);
        if (!a.within_bounds) return fail("describe writes past the end of its layout: see its struct_size");
        if (a.layout.page_bytes == 0) return fail("its pages hold no bytes");
        if (!std::memchr(a.layout.layout_tag, 0, sizeof a.layout.layout_tag) || !a.layout.layout_tag[0])
            return fail("its layout_tag is empty or not terminated");
    }
    return {};
}

Outcome refuses(Subject& subject) {
    PB_TRY(auto component, subject.make());
    struct Case {
        const char* what;
        void (*spoil)(pb_attention_spec&);
    };
    constexpr Case kCases[] = {
        {"a device that does not exist", [](pb_attention_spec& s) { s.device = "abacus"; }},
        {"3 heads over 2 of KV", [](pb_attention_spec& s) { s.heads = 3; }},
        {"no heads of KV", [](pb_attention_spec& s) { s.kv_heads = 0; }},
        {"a head_dim of 0", [](pb_attention_spec& s) { s.head_dim = 0; }},
        {"pages of no token", [](pb_attention_spec& s) { s.block_size = 0; }},
        {"KV of dtype i64", [](pb_attention_spec& s) { s.kv_dtype = PB_I64; }},
        {"activations of dtype u8", [](pb_attention_spec& s) { s.activation_dtype = PB_U8; }},
    };
    std::string why;
    Shape shape;
    shape.device = device_of(subject, why);
    std::string faults;
    for (const Case& c : kCases) {
        pb_attention_spec spec = shape.spec();
        c.spoil(spec);
        const Answer a = describe(*component, spec);
        const std::string before = faults.empty() ? "" : "; ";
        if (a.status != PB_UNSUPPORTED)
            faults += before + "it answers " + c.what + " by status " + std::to_string(a.status) +
                      ", expected PB_UNSUPPORTED";
        else if (!has_reason(a)) faults += before + "it refuses " + c.what + " without a reason";
    }
    return faults.empty() ? Outcome() : fail(faults);
}

std::vector<Tokens> some_sequences(const Shape& shape) {
    std::vector<Tokens> out;
    for (const uint32_t length : {1u, 7u, 16u, 40u, 97u}) out.push_back(random_tokens(900 + length, shape, length));
    return out;
}

std::string compare(const Shape& shape, const Tokens& t, uint32_t from, uint32_t to, const float* got) {
    const size_t width = size_t{shape.heads} * shape.head_dim;
    // Weights of the softmax may be rounded to bf16, by up to 2⁻⁸, where values are not f32; a code that lies between
    // two may become either.
    const double near = shape.kv_dtype == PB_F32 ? 1e-4 : shape.kv_dtype == PB_BF16 ? 5e-3 : 1e-2;
    for (uint32_t token = from; token < to; ++token) {
        const auto expected = attend(shape, t, token);
        for (size_t i = 0; i < width; ++i) {
            const double is = got[(token - from) * width + i];
            if (!(std::abs(is - expected[i]) <= near * (1 + std::abs(expected[i]))))
                return "head " + std::to_string(i / shape.head_dim) + " of token " + std::to_string(token) + " is " +
                       std::to_string(is) + ", expected " + std::to_string(expected[i]) +
                       (shape.window > 0 ? " with a window of " + std::to_string(shape.window) : "");
        }
    }
    return "";
}

std::string text_of(const Shape& s) {
    return " (" + std::to_string(s.heads) + " heads over " + std::to_string(s.kv_heads) + ", head_dim " +
           std::to_string(s.head_dim) + ", block_size " + std::to_string(s.block_size) + ", KV in " +
           dtype_name(s.kv_dtype) + ")";
}

// Whole prompts in one step, each from position 0.
Outcome whole_prompts(const host::Component& c, const Shape& shape) {
    const auto sequences = some_sequences(shape);
    PB_TRY(Pages pages, Pages::create(c, shape, kPages));
    std::vector<Part> parts;
    for (uint32_t s = 0; s < sequences.size(); ++s) parts.push_back({&sequences[s], s, 0, sequences[s].length});
    PB_TRY(const auto out, pages.step(parts));
    size_t at = 0;
    for (const Part& p : parts) {
        if (const auto wrong = compare(shape, *p.tokens, p.from, p.to, out.data() + at); !wrong.empty())
            return fail(wrong);
        at += size_t{p.to} * shape.heads * shape.head_dim;
    }
    return {};
}

// Runs f for each shape that the backend takes; skipped if that is none.
template <class F>
Outcome for_each_shape(Subject& subject, uint32_t threads, F&& f) {
    std::string why;
    const host::Component* const device = device_of(subject, why);
    if (!why.empty()) return Outcome::skip(why);
    PB_TRY(auto component, subject.make(threads));
    const auto taken = supported(*component, device);
    if (taken.empty()) {
        const Shape first = shapes(device)[0];
        return Outcome::skip(std::string("it takes none of the shapes tried on device '") + first.spec().device +
                             "': " + describe(*component, first.spec()).reason);
    }
    for (const Shape& s : taken) {
        Outcome o = f(*component, s);
        if (o.what == Outcome::What::kFailed) o.reason += text_of(s);
        if (o.what != Outcome::What::kOk) return o;
    }
    return {};
}

Outcome exact(Subject& subject) { return for_each_shape(subject, 2, whole_prompts); }

// A chunk and a token after pages have come free that lie wholly before the window.
Outcome past_freed_pages(const host::Component& c, const Shape& shape) {
    const Tokens t = random_tokens(41, shape, 96);
    PB_TRY(Pages pages, Pages::create(c, shape, kPages));
    PB_CHECK(pages.step({{&t, 0, 0, 80}}));
    for (const auto& [from, to] : {std::pair{80u, 95u}, {95u, 96u}}) {
        pages.free_before(0, (from + 1 - shape.window) / shape.block_size);
        PB_TRY(const auto out, pages.step({{&t, 0, from, to}}));
        if (const auto wrong = compare(shape, t, from, to, out.data()); !wrong.empty())
            return fail(wrong + ", after pages before it were freed");
    }
    return {};
}

using CheckShape = Outcome(const host::Component&, const Shape&);

// Of each shape as `change` makes it; skipped where it refuses them all.
Outcome changed(Subject& subject, void (*change)(Shape&), const char* otherwise, CheckShape* run = whole_prompts) {
    bool tried = false;
    const Outcome o = for_each_shape(subject, 1, [&](const host::Component& c, Shape shape) -> Outcome {
        change(shape);
        if (describe(c, shape.spec()).status == PB_UNSUPPORTED) return {};
        tried = true;
        return run(c, shape);
    });
    return o.what == Outcome::What::kOk && !tried ? Outcome::skip(otherwise) : o;
}

Outcome window(Subject& subject) {
    return changed(
        subject, [](Shape& s) { s.window = 9; }, "it does no sliding window",
        [](const host::Component& c, const Shape& shape) {
            const Outcome whole = whole_prompts(c, shape);
            return whole.what == Outcome::What::kOk ? past_freed_pages(c, shape) : whole;
        });
}

Outcome scale(Subject& subject) {
    return changed(
        subject, [](Shape& s) { s.scale = 0.6f * s.spec().scale; }, "it takes no scale but 1/sqrt(head_dim)");
}

Outcome soft_cap(Subject& subject) {
    return changed(
        subject, [](Shape& s) { s.soft_cap = 1.5f; }, "it caps no scores");
}

Outcome slopes(Subject& subject) {
    if (!(subject.table<pb_attention>().capabilities & PB_ATTENTION_SLOPES)) return Outcome::skip("it takes no slopes");
    return for_each_shape(subject, 1, [](const host::Component& c, Shape shape) {
        for (uint32_t h = 0; h < shape.heads; ++h) shape.slopes.push_back(std::exp2(-static_cast<float>(h) - 1));
        return whole_prompts(c, shape);
    });
}

// Sinks below the scores, among them and above them all, which leave little of the values.
Outcome sinks(Subject& subject) {
    if (!(subject.table<pb_attention>().capabilities & PB_ATTENTION_SINKS)) return Outcome::skip("it takes no sinks");
    return for_each_shape(subject, 1, [](const host::Component& c, Shape shape) -> Outcome {
        constexpr float kSinks[] = {0.5f, -40, 3, 12};
        for (uint32_t h = 0; h < shape.heads; ++h) shape.sinks.push_back(kSinks[h % std::size(kSinks)]);
        return whole_prompts(c, shape);
    });
}

// A prompt in chunks, then token by token, with pages that the next sequence has not reached poisoned throughout.
Outcome chunks(Subject& subject) {
    return for_each_shape(subject, 1, [](const host::Component& c, const Shape& shape) -> Outcome {
        const Tokens t = random_tokens(31, shape, 50);
        const size_t width = size_t{shape.heads} * shape.head_dim;
        PB_TRY(Pages whole, Pages::create(c, shape, kPages));
        PB_TRY(const auto expected, whole.step({{&t, 0, 0, t.length}}));
        PB_TRY(Pages pages, Pages::create(c, shape, kPages));
        for (const auto& [from, to] : {std::pair{0u, 1u}, {1u, 8u}, {8u, 40u}, {40u, 41u}, {41u, 42u}, {42u, 50u}}) {
            PB_TRY(const auto out, pages.step({{&t, 0, from, to}}));
            if (std::memcmp(out.data(), expected.data() + from * width, out.size() * sizeof(float)) != 0)
                return fail("tokens " + std::to_string(from) + " to " + std::to_string(to - 1) +
                            " have other bits in a chunk than in the whole prompt");
        }
        return {};
    });
}

Outcome batch(Subject& subject) {
    return for_each_shape(subject, 2, [&](const host::Component& c, const Shape& shape) -> Outcome {
        const auto sequences = some_sequences(shape);
        PB_TRY(Pages together, Pages::create(c, shape, kPages));
        std::vector<Part> parts;
        for (uint32_t s = 0; s < sequences.size(); ++s) parts.push_back({&sequences[s], s, 0, sequences[s].length});
        PB_TRY(const auto all, together.step(parts));
        PB_TRY(auto with_one_thread, subject.make(1));
        size_t at = 0;
        for (const Part& p : parts) {
            PB_TRY(Pages alone_pages, Pages::create(*with_one_thread, shape, kPages));
            PB_TRY(const auto alone, alone_pages.step({{p.tokens, 0, 0, p.to}}));
            if (std::memcmp(alone.data(), all.data() + at, alone.size() * sizeof(float)) != 0)
                return fail("a sequence of " + std::to_string(p.to) +
                            " tokens has other bits alone on one thread than in a batch on two");
            at += alone.size();
        }
        return {};
    });
}

Outcome pages(Subject& subject) {
    return for_each_shape(subject, 1, [](const host::Component& c, const Shape& shape) -> Outcome {
        const Tokens t = random_tokens(32, shape, shape.block_size + 3);
        PB_TRY(Pages p, Pages::create(c, shape, kPages));
        PB_CHECK(p.step({{&t, 0, 0, t.length}}));
        const uint32_t first = p.page_of(0, 0), second = p.page_of(0, 1);
        std::vector<std::vector<uint8_t>> before;
        for (uint32_t i = 0; i < kPages; ++i) {
            PB_TRY(std::vector<uint8_t> page, p.page(i));
            before.push_back(std::move(page));
            if (i != first && i != second && before[i] != std::vector<uint8_t>(before[i].size(), 0xff))
                return fail("append_kv wrote into page " + std::to_string(i) + ", which no slot names");
        }
        const Tokens other = random_tokens(33, shape, t.length);
        PB_CHECK(p.step({{&other, 0, 0, t.length}}, Pages::Write::kNo));
        for (uint32_t i = 0; i < kPages; ++i) {
            PB_TRY(const std::vector<uint8_t> after, p.page(i));
            if (after != before[i])
                return fail("append_kv wrote a token whose slot is -1, into page " + std::to_string(i));
        }
        return {};
    });
}

Outcome empty(Subject& subject) {
    return for_each_shape(subject, 1, [](const host::Component& c, const Shape& shape) -> Outcome {
        PB_TRY(Pages p, Pages::create(c, shape, kPages));
        PB_CHECK(p.step({}));
        return {};
    });
}

constexpr Check kChecks[] = {
    {"attention.describe", "says what it takes: page bytes and a layout tag, or PB_UNSUPPORTED", describes},
    {"attention.refuses", "refuses what makes no sense by PB_UNSUPPORTED and a reason", refuses},
    {"attention.exact",
     "computes softmax(q k) v of a causal prompt, within 1e-4 of double (KV in bf16: 5e-3, in codes: 1e-2)", exact},
    {"attention.window", "sees no further back than its sliding window, whose freed pages it never reads", window},
    {"attention.scale", "multiplies q k by the scale that it is given", scale},
    {"attention.soft_cap", "caps scores after the scale, or refuses to", soft_cap},
    {"attention.slopes", "adds to a score what the key's distance makes, where it says that it can", slopes},
    {"attention.sinks", "adds each head's sink to what its softmax divides by, where it says that it can", sinks},
    {"attention.chunks", "gives the bits of a whole prompt when it comes in chunks, over poisoned pages", chunks},
    {"attention.batch", "gives a sequence the same bits alone and in a batch, on one thread and two", batch},
    {"attention.pages", "writes into the slots that it is given and nowhere else", pages},
    {"attention.empty", "takes a batch without tokens", empty},
};

}  // namespace

const Suite kAttention{kChecks, nullptr};

}  // namespace patchbay::conformance
