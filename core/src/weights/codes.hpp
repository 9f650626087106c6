// Weights as small numbers, w[r, c] = code · scale + offset with a scale and an offset for each group of columns
// (pb_quant): where they come from, and how those of several tensors become one weight's. Used by the loader.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "patchbay/abi/tensor.h"

namespace patchbay::weights {

struct CodeForm {
    pb_dtype dtype = PB_I8;  // or PB_I4 or PB_FP8
    uint32_t group = 32;     // columns: 16, 32, 64 or 128
    enum class Offsets { kNone, kSome } offsets = Offsets::kNone;

    int64_t row_bytes(int64_t cols) const { return dtype == PB_I4 ? (cols + 1) / 2 : cols; }
    int64_t groups(int64_t cols) const { return (cols + group - 1) / group; }
};
// Columns of a group of pb_quant, where `stored` of `cols` columns share a scale: scales may be repeated, so that a
// group is one that devices support. Below 16: unsupported.
uint32_t device_group(int64_t stored, int64_t cols);
// The form that holds what either holds: of whole numbers, or of fp8 alone.
CodeForm holding_both(const CodeForm&, const CodeForm&);

struct CodeRows {  // some rows, a code in each byte
    CodeRows(const CodeForm&, int64_t rows, int64_t cols);
    int8_t* codes_of(int64_t row) { return codes.data() + row * cols; }
    float* scales_of(int64_t row) { return scales.data() + row * groups; }
    float* offsets_of(int64_t row) { return offsets.data() + row * groups; }

    int64_t rows, cols, groups;  // groups: of a row
    uint32_t group;
    std::vector<int8_t> codes;           // (rows, cols)
    std::vector<float> scales, offsets;  // (rows, groups); offsets: 0 where the form has none
};

class CodeSource {  // of a matrix (rows, cols), cut as a rank needs it
  public:
    virtual ~CodeSource() = default;
    virtual CodeForm form() const = 0;
    // Rows [begin, end) into rows of form(). [any thread]
    virtual void unpack(int64_t begin, int64_t end, CodeRows& out) const = 0;
    // Column c stands for column order()[c] of the matrix; empty: for c.
    virtual std::span<const int32_t> order() const { return {}; }
};

using CodeSources = std::vector<std::shared_ptr<const CodeSource>>; // of the parts of a weight

struct CodeTarget {  // memory for a matrix
    CodeForm form;   // that holds the source's
    int64_t cols;
    std::byte* codes;        // (rows, form.row_bytes(cols))
    float *scales, *offsets; // (rows, form.groups(cols)); offsets: null where the form has none
};
// All rows of the source. name: for the error where a scale, an offset or a code of fp8 is not finite.
Result<> write_codes(const CodeSource&, int64_t rows, const CodeTarget&, const std::string& name, ThreadPool*);
// The numbers that codes of whole numbers stand for, row-major in the matrix's order of columns. wanted: PB_F32 or
// PB_BF16.
void write_real(const CodeSource&, int64_t rows, int64_t cols, pb_dtype wanted, std::byte* target, ThreadPool*);

}  // namespace patchbay::weights
