#pragma once
// A strict parser for the XML used here: elements, attributes in double quotes, text, the five
// references and &#39;. Throws on anything else.

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bamtrain::testing {

struct Xml {
  std::string name, text;  // text: the element's own, without its children's
  std::map<std::string, std::string> attributes;
  std::vector<Xml> children;

  /// All elements with that name below this one, in order.
  std::vector<const Xml*> all(const std::string& of) const;
  /// Those whose attribute "class" contains the word.
  std::vector<const Xml*> of_class(const std::string& of, const std::string& word) const;
  const std::string& at(const std::string& attribute) const { return attributes.at(attribute); }
  double number(const std::string& attribute) const { return std::stod(at(attribute)); }
};

/// Parses the single element that `text` consists of. Otherwise throws std::runtime_error with the
/// position.
Xml parse_xml(const std::string& text);

/// External resources that a page would load: each address and each reference, with the text after
/// it. The name of SVG's namespace, in quotes, is not an address.
std::vector<std::string> references_in(const std::string& html);

/// The content between <body> and <script> of a page, as the element <body>.
Xml body_of(const std::string& html);

}  // namespace bamtrain::testing
