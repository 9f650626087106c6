// Quantised weights: each product against that of the weights they stand for, in double, within what rounding x to 8
// bits may cost, or, of fp8, what rounding weights to bf16 may.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/device_case.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

struct Shape {
    int64_t tokens, rows, cols, group;
    bool offsets, order, bias;
};

constexpr Shape kShapes[] = {
    {1, 5, 16, 16, false, false, false},  {3, 40, 64, 32, false, false, true}, {20, 33, 100, 32, true, false, false},
    {9, 70, 129, 64, true, true, true},   {5, 64, 300, 128, false, true, false}, {17, 7, 31, 16, true, true, true},
};

struct Weight {
    Weight(Noise& noise, const Shape& s, pb_dtype of) : shape(s), dtype(of), groups((s.cols + s.group - 1) / s.group) {
        const int low = of == PB_I4 ? -8 : -128, count = of == PB_I4 ? 16 : 256;
        for (int64_t i = 0; i < s.rows * s.cols; ++i) {
            int code = low + static_cast<int>(noise.below(static_cast<uint32_t>(count)));
            if (of == PB_FP8 && (code & 0x7f) == 0x7f) code ^= 1; // no NaN
            codes.push_back(code);
        }
        const int unit = 16 * (of == PB_FP8 ? 1 : count);
        for (int64_t i = 0; i < s.rows * groups; ++i) { // few bits: a device may hold them in f16
            scales.push_back(static_cast<float>(1 + noise.below(31)) / static_cast<float>(unit));
            if (s.offsets) offsets.push_back((static_cast<float>(noise.below(31)) - 15) / 16);
        }
        if (s.bias) bias = noise.reals(static_cast<size_t>(s.rows));
        for (int32_t c = 0; s.order && c < s.cols; ++c) order.push_back(c);
        for (size_t c = order.size(); c > 1; --c)
            std::swap(order[c - 1], order[noise.below(static_cast<uint32_t>(c))]);
        const int64_t row_bytes = of == PB_I4 ? (s.cols + 1) / 2 : s.cols;
        bytes.resize(static_cast<size_t>(s.rows * row_bytes));
        for (int64_t r = 0; r < s.rows; ++r)
            for (int64_t c = 0; c < s.cols; ++c) {
                const int code = codes[static_cast<size_t>(r * s.cols + c)];
                uint8_t& byte = bytes[static_cast<size_t>(r * row_bytes + (of == PB_I4 ? c / 2 : c))];
                byte = static_cast<uint8_t>(of == PB_I4 ? byte | (code & 15) << (c % 2 * 4) : code);
            }
        quant = {sizeof quant, static_cast<uint32_t>(s.group), scales.data(), s.offsets ? offsets.data() : nullptr,
                 s.order ? order.data() : nullptr};
    }
    Weight(const Weight&) = delete;

    pb_weight_source source() const {
        constexpr uint64_t kBoth = 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING;
        return {sizeof(pb_weight_source), PB_WEIGHT_LINEAR, dtype, 0, shape.rows, shape.cols, bytes.data(),
                shape.bias ? bias.data() : nullptr, kBoth, &quant};
    }
    double value(int64_t r, int64_t c) const {
        const auto g = static_cast<size_t>(r * groups + c / shape.group);
        const int code = codes[static_cast<size_t>(r * shape.cols + c)];
        const double number = dtype == PB_FP8 ? fp8_to_f32(static_cast<uint8_t>(code)) : code;
        return number * double{scales[g]} + (shape.offsets ? offsets[g] : 0.0);
    }
    int64_t column_of_x(int64_t c) const { return shape.order ? order[static_cast<size_t>(c)] : c; }

    Shape shape;
    pb_dtype dtype;
    int64_t groups;
    std::vector<int> codes;
    Floats scales, offsets, bias;
    std::vector<int32_t> order;
    std::vector<uint8_t> bytes;
    pb_quant quant{};
};

std::string wrong_product(const Weight& w, const Floats& x, const Floats& got, double tolerance) {
    const auto& [tokens, rows, cols, group, offsets, order, bias] = w.shape;
    for (int64_t i = 0; i < tokens * rows; ++i) {
        const int64_t t = i / rows, r = i % rows;
        double sum = bias ? w.bias[static_cast<size_t>(r)] : 0, slack = 0;
        for (int64_t g = 0; g < w.groups; ++g) {
            double max_input = 0, size = 0, products = 0;
            for (int64_t c = g * group; c < std::min((g + 1) * group, cols); ++c) {
                const double in = x[static_cast<size_t>(t * cols + w.column_of_x(c))];
                sum += in * w.value(r, c);
                size += std::abs(w.value(r, c));
                products += std::abs(in * w.value(r, c));
                max_input = std::max(max_input, std::abs(in));
            }
            slack += w.dtype == PB_FP8 ? products / 256 : size * max_input / 127;
        }
        const double value = got[static_cast<size_t>(i)];
        if (!(std::abs(value - sum) <= slack + tolerance * (1 + std::abs(sum))))
            return "value " + std::to_string(i) + " is " + std::to_string(value) + ", expected " + std::to_string(sum) +
                   " within " + std::to_string(slack);
    }
    return "";
}

Outcome check_shape(const host::Component& component, const pb_device& table, const Shape& shape, pb_dtype dtype,
                    Rows rows_kind) {
    Noise noise(static_cast<uint64_t>(41 + shape.rows + dtype));
    const Weight w(noise, shape, dtype);
    PB_TRY(Bench b, Bench::create(component, rows_kind));
    const pb_weight_source source = w.source();
    pb_weight* made = nullptr;
    if (table.prepare(component.self(), &source, &made) == PB_UNSUPPORTED)
        return Outcome::skip(std::string("it takes no codes of ") + dtype_name(dtype));
    if (made) table.release(component.self(), made);
    PB_TRY(const pb_weight* weight, b.weights().prepare(source));

    const std::string what = "a weight (" + std::to_string(shape.rows) + ", " + std::to_string(shape.cols) +
                             ") in groups of " + std::to_string(shape.group) + ": ";
    const Floats x = b.rounded(noise.reals(static_cast<size_t>(shape.tokens * shape.cols)));
    const auto product = [&](int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(x, from, to, shape.cols), {to - from, shape.cols}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, shape.rows}));
        return b.finish(out, [&](const pb_ops& o) { o.linear(o.ctx, &out, &in, weight); });
    };
    PB_TRY(const Floats all, product(0, shape.tokens));
    if (const std::string wrong = wrong_product(w, x, all, b.tolerance()); !wrong.empty()) return fail(what + wrong);
    for (int64_t t = 0; t < shape.tokens && !b.info().batch_dependent; ++t) {
        PB_TRY(const Floats alone, product(t, t + 1));
        if (std::memcmp(alone.data(), all.data() + t * shape.rows, alone.size() * sizeof(float)) != 0)
            return fail(what + "row " + std::to_string(t) + " has other bits alone than among " +
                        std::to_string(shape.tokens));
    }

    const std::vector<int32_t> ids = {static_cast<int32_t>(shape.rows - 1), 0};
    PB_TRY(const pb_tensor which, b.arrays().put_ints(ids));
    PB_TRY(const pb_tensor out, b.arrays().poison({2, shape.cols}));
    PB_TRY(const Floats read, b.finish(out, [&](const pb_ops& o) { o.embedding(o.ctx, &out, weight, &which); }));
    for (int64_t i = 0; i < 2 * shape.cols; ++i) {
        const int64_t row = i / shape.cols, c = i % shape.cols;
        const double value = read[static_cast<size_t>(row * shape.cols + w.column_of_x(c))];
        const double expected = w.value(ids[static_cast<size_t>(row)], c);
        if (!(std::abs(value - expected) <= b.tolerance() * (1 + std::abs(expected))))
            return fail(what + "column " + std::to_string(c) + " of row " + std::to_string(ids[size_t(row)]) +
                        " reads as " + std::to_string(value) + ", expected " + std::to_string(expected));
    }
    return {};
}

}  // namespace

Outcome quantised(Subject& subject, pb_dtype dtype) {
    PB_TRY(auto component, subject.make(2));
    for (Shape shape : kShapes)
        for (const Rows rows : {Rows::kDense, Rows::kStrided}) {
            if (dtype == PB_FP8) shape.offsets = shape.order = false;
            Outcome outcome = check_shape(*component, subject.table<pb_device>(), shape, dtype, rows);
            if (outcome.what != Outcome::What::kOk) return outcome;
        }
    return {};
}

}  // namespace patchbay::conformance
