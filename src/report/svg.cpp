#include "svg.hpp"

#include "chexnet/core/text_format.hpp"
#include "chexnet/report/plot.hpp"

namespace chexnet {

std::string svg_begin(double width, double height, const std::string& label) {
  return "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" "
         "viewBox=\"0 0 " +
         fixed(width, 0) + " " + fixed(height, 0) +
         "\" role=\"img\" aria-label=\"" + xml_escaped(label) +
         "\" font-family=\"system-ui,sans-serif\" font-size=\"12\" "
         "fill=\"#1b1f23\"><rect class=\"ground\" width=\"100%\" "
         "height=\"100%\" fill=\"#fff\"/>";
}

std::string svg_text(const std::string& x, double y, const char* anchor,
                     const std::string& what, const std::string& more) {
  return "<text x=\"" + x + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" +
         anchor + "\"" + more + ">" + xml_escaped(what) + "</text>";
}

}  // namespace chexnet
