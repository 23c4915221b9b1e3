#pragma once
// A strict reader of the XML that pages here need: elements, attributes in double quotes, text, the
// five references and &#39;. Anything else ends the test.

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bamtrain::testing {

struct Xml {
  std::string name, text;  // text: its own, children's left out
  std::map<std::string, std::string> attributes;
  std::vector<Xml> children;

  /// All elements of that name below this one, in order.
  std::vector<const Xml*> all(const std::string& of) const;
  /// Those whose attribute "class" holds the word.
  std::vector<const Xml*> of_class(const std::string& of, const std::string& word) const;
  const std::string& at(const std::string& attribute) const { return attributes.at(attribute); }
  double number(const std::string& attribute) const { return std::stod(at(attribute)); }
};

/// The one element that `text` is. Throws std::runtime_error with the place otherwise.
Xml parse_xml(const std::string& text);

/// Where a page would reach outside of itself: each address and each reference, with what follows.
/// The name of SVG's name space, in quotes, is no address.
std::vector<std::string> references_in(const std::string& html);

/// What lies between <body> and <script> of a page, as the element <body>.
Xml body_of(const std::string& html);

}  // namespace bamtrain::testing
