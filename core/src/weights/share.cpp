#include "weights/share.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/refusals.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::weights {
namespace {

struct Span {
    int64_t begin, count;
};

// This rank's share of `total`, in whole units.
Result<Span> deal(int64_t total, int64_t unit, uint32_t rank, uint32_t size, const std::string& name,
                  const char* axis) {
    unit = std::max<int64_t>(unit, 1);
    if (total % unit != 0 || (total / unit) % size != 0)
        return invalid("cannot deal the " + std::to_string(total) + " " + axis + " of '" + name + "' to " +
                       std::to_string(size) + " ranks in units of " + std::to_string(unit) +
                       " (choose a tensor_parallel_size that divides " + std::to_string(total / unit) + ")");
    return Span{total / size * rank, total / size};
}

Result<> check_order(const pb_weight_spec& spec, uint32_t index) {
    const pb_row_order& order = spec.orders[index];
    const pb_weight_part& part = spec.parts[index];
    if (order.unit == 0 && order.stride == 0 && order.pairs == 0) return {};
    const auto refuse = [&](const std::string& why) {
        return unsupported("the model takes the rows of '" + text_of(part.name) + "' in an order of their own, " + why);
    };
    if (spec.role == PB_WEIGHT_VECTOR || part.transposed) return refuse("and it is a vector or transposed");
    if (order.pairs < 0 || order.pairs % 2 != 0 || (order.pairs && part.rows % order.pairs != 0))
        return refuse("in pairs of " + std::to_string(order.pairs) + " rows, of " + std::to_string(part.rows));
    if (order.unit < 0 || (order.unit == 0) != (order.stride == 0) || order.stride < order.unit)
        return refuse(std::to_string(order.unit) + " of every " + std::to_string(order.stride));
    const int64_t last = part.rows - 1, stored = part.stored_rows ? part.stored_rows : part.rows;
    if (order.unit && (last / order.unit > stored / order.stride ||
                       part.first_row + last / order.unit * order.stride + last % order.unit >= stored))
        return refuse("which reach past its " + std::to_string(stored));
    return {};
}

Result<> check_spec(const pb_weight_spec& spec, uint32_t rank, uint32_t size) {
    if (size == 0 || rank >= size)
        return invalid("rank " + std::to_string(rank) + " of " + std::to_string(size) + " does not exist");
    if (spec.tied_to > 0 || spec.part_count == 0)
        return invalid("this weight is not in a checkpoint: the model shares or computes it");
    if (spec.part_count > PB_MAX_FUSED)
        return invalid("the model fuses " + std::to_string(spec.part_count) + " tensors, more than " +
                       std::to_string(PB_MAX_FUSED));
    constexpr int64_t kMaxElements = int64_t{1} << 40;
    for (uint32_t i = 0; i < spec.part_count; ++i) {
        const int64_t rows = spec.role == PB_WEIGHT_VECTOR ? 1 : spec.parts[i].rows;
        if (rows < 1 || spec.cols < 1 || rows > kMaxElements / spec.cols)
            return invalid("the model declares '" + text_of(spec.parts[i].name) + "' of shape " +
                           shape_text({rows, spec.cols}));
        const auto& [first, stored] = std::pair(spec.parts[i].first_row, spec.parts[i].stored_rows);
        const bool vector = spec.role == PB_WEIGHT_VECTOR; // then of numbers, not of rows
        const int64_t taken = vector ? spec.cols : rows;
        if (stored != 0 && (stored > kMaxElements / spec.cols || first < 0 || first > stored - taken))
            return invalid("the model declares " + std::to_string(taken) + (vector ? " numbers" : " rows") + " from " +
                           std::to_string(first) + " on of '" + text_of(spec.parts[i].name) + "', which has " +
                           std::to_string(stored));
        PB_CHECK(check_order(spec, i));
    }
    return {};
}

// Of a linear that is packed as `module`.
Result<std::shared_ptr<const CodeSource>> codes_of(const Piece& piece, const std::string& module,
                                                   const StoredTensors& stored) {
    const std::optional<PackedFormat>& format = stored.packed();
    if (!format)
        return invalid("there is '" + module + ".qweight' in place of '" + piece.name +
                       "', but config.json has no quantization_config that says how it is packed");
    return packed_codes(*format, *stored.checkpoint(), module, piece);
}

}  // namespace

Result<Share> share_of(const pb_weight_spec& spec, uint32_t rank, uint32_t size, const StoredTensors& stored) {
    PB_CHECK(check_spec(spec, rank, size));
    const bool vector = spec.role == PB_WEIGHT_VECTOR;
    Share out;
    for (uint32_t i = 0; i < spec.part_count; ++i) {
        const pb_weight_part& part = spec.parts[i];
        const std::string name = text_of(part.name), bias = text_of(part.bias);
        const int64_t part_rows = vector ? 1 : part.rows;
        Span rows{0, part_rows}, cols{0, spec.cols};
        if (spec.shard == PB_SHARD_ROWS) {
            PB_TRY(rows, deal(part_rows, part.shard_unit, rank, size, name, "rows"));
        } else if (spec.shard == PB_SHARD_COLS) {
            PB_TRY(cols, deal(spec.cols, part.shard_unit, rank, size, name, "columns"));
        }
        if (i > 0 && cols.count != out.cols)
            return invalid("the parts fused with '" + name + "' are cut into different numbers of columns");
        const int64_t stored_rows = part.stored_rows && !vector ? part.stored_rows : part_rows;
        if (part.stored_rows) (vector ? cols : rows).begin += part.first_row;
        const int64_t length = part.stored_rows ? part.stored_rows : spec.cols; // of a vector
        const std::vector<int64_t> shape =
            vector ? std::vector<int64_t>{length} : std::vector<int64_t>{stored_rows, spec.cols};
        out.pieces.push_back({name, shape, rows.begin, rows.count, cols.begin, cols.count});
        if (part.transposed && !vector) out.pieces.back().stored = Piece::Stored::kTransposed;
        const RowOrder order{part.stored_rows ? part.first_row : 0, spec.orders[i].unit, spec.orders[i].stride,
                             spec.orders[i].pairs};
        if (!vector) out.pieces.back().order = order;
        out.packed.emplace_back();
        if (const auto module = vector ? std::nullopt : stored.packed_module(name)) {
            PB_TRY(out.packed.back(), codes_of(out.pieces.back(), *module, stored));
        } else {
            PB_CHECK(stored.check(out.pieces.back()));
            PB_CHECK(stored.find_scales(out.pieces.back()));
        }
        out.biases.push_back({bias, {stored_rows}, 0, 1, rows.begin, rows.count, Piece::Holds::kBias});
        if (!vector) out.biases.back().order = order;
        if (!bias.empty()) PB_CHECK(stored.check(out.biases.back()));
        out.has_bias = out.has_bias || !bias.empty();
        out.rows += rows.count;
        out.cols = cols.count;
    }
    if (spec.shard == PB_SHARD_COLS && rank != 0) out.has_bias = false;
    return out;
}

}  // namespace patchbay::weights
