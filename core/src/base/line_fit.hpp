// A line fitted to points by least squares: each point updates running means. Later points may have more weight.
#pragma once

namespace patchbay {

class LineFit {
  public:
    // share: the weight of the new point in the means, in (0, 1]. For the first point it is 1; with 1 / n for the n-th
    // one all points have the same weight.
    void add(double x, double y, double share) {
        x_ += share * (x - x_);
        y_ += share * (y - y_);
        xx_ += share * (x * x - xx_);
        xy_ += share * (x * y - xy_);
    }
    double mean_x() const { return x_; }
    double mean_y() const { return y_; }
    double variance() const { return xx_ - x_ * x_; }             // of x
    double slope() const { return (xy_ - x_ * y_) / variance(); } // needs variance() > 0

  private:
    double x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace patchbay
