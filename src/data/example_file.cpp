#include "data/example_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"
#include "core/line_reader.h"
#include "core/text_file.h"

namespace bamtrain {

namespace {

using nlohmann::json;

/// A line of the file, for errors.
struct ExampleLine {
  const std::string& path;
  int64_t number = 0;

  [[noreturn]] void refuse(const std::string& expected, const std::string& found,
                           const std::string& remedy) const {
    throw Error(ExitCode::data, fmt::format("{}:{}", path, number), expected, found, remedy);
  }
};

/// The ids that `value` lists, from `least` to `limit` - 1.
Symbols ids_of(const json& value, const char* name, int64_t least, int64_t limit, const char* key,
               const ExampleLine& line) {
  Symbols ids;
  for (const json& v : value) {
    if (v.is_null() && least == kIgnoreIndex) {  // written by bamdata synth
      ids.push_back(kIgnoreIndex);
      continue;
    }
    const bool whole = v.is_number_unsigned() ? v.get<uint64_t>() < static_cast<uint64_t>(limit)
                                              : v.is_number_integer() && v >= least && v < limit;
    if (!whole) {
      line.refuse(fmt::format("ids from {} to {} in \"{}\"", least, limit - 1, name),
                  abbreviate(v.dump()), fmt::format("correct it, or raise {}", key));
    }
    ids.push_back(v.get<int32_t>());
  }
  return ids;
}

/// With s = prompt + target, position i has the target s[i + 1] if that belongs to `target`.
void continued(const Symbols& prompt, const Symbols& target, Symbols* inputs, Symbols* targets) {
  for (size_t i = 0; i + 1 < prompt.size() + target.size(); ++i) {
    const auto at = [&](size_t j) {
      return j < prompt.size() ? prompt[j] : target[j - prompt.size()];
    };
    inputs->push_back(at(i));
    targets->push_back(i + 1 < prompt.size() ? kIgnoreIndex : at(i + 1));
  }
}

/// Ids of prompt and target.
std::pair<Symbols, Symbols> encoded(const std::string& prompt, const std::string& target,
                                    const Tokenizer& tokenizer) {
  const Symbols head = tokenizer.encode(prompt), whole = tokenizer.encode(prompt + target);
  const auto apart = std::mismatch(head.begin(), head.end(), whole.begin(), whole.end()).second;
  std::pair<Symbols, Symbols> parts = {{whole.begin(), apart}, {apart, whole.end()}};
  if (tokenizer.bos() >= 0) parts.first.insert(parts.first.begin(), tokenizer.bos());
  const int32_t end = tokenizer.eos() >= 0 ? tokenizer.eos() : tokenizer.bos();
  if (end >= 0) parts.second.push_back(end);
  return parts;
}

bool has_only(const json& object, const char* a, const char* b) {
  return object.size() == 2 && object.contains(a) && object.contains(b);
}

}  // namespace

ExampleFile ExampleFile::read(const std::string& path, const Tokenizer* tokenizer, int64_t inputs,
                              int64_t classes) {
  const InputFile file = open_text_file(path, "check the path and its permissions");
  ExampleFile out;
  out.sha256_ = file.sha256();
  LineReader reader(file);
  ExampleLine line = {path};
  constexpr const char* kInputs = "model.vocab";
  const char* const of_classes = classes == inputs ? kInputs : "model.classes";
  std::string_view text;
  const auto note_continued = [&] {
    if (out.continued_line_ == 0) out.continued_line_ = line.number;
  };
  const auto add = [&] {
    const auto before = static_cast<size_t>(out.ends_.empty() ? 0 : out.ends_.back());
    const auto first = out.targets_.begin() + static_cast<std::ptrdiff_t>(before);
    if (std::all_of(first, out.targets_.end(), [](int32_t t) { return t == kIgnoreIndex; })) {
      line.refuse("at least one target", "none but -1", "remove the line");
    }
    out.ends_.push_back(std::ssize(out.inputs_));
    if (const int64_t length = out.length(out.size() - 1); length > out.longest_) {
      out.longest_ = length;
      out.longest_line_ = line.number;
    }
  };
  const auto take = [&] {
    ++line.number;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    json object = parse_json_line(
        text, {path, ExitCode::data, "correct the line, or remove it", line.number});
    if (object.is_object() && object.contains("input")) object.erase("length");  // bamdata synth's
    if (has_only(object, "input", "targets") && object["input"].is_array() &&
        object["targets"].is_array()) {
      const Symbols in = ids_of(object["input"], "input", 0, inputs, kInputs, line);
      const Symbols wanted =
          ids_of(object["targets"], "targets", kIgnoreIndex, classes, of_classes, line);
      if (in.size() != wanted.size()) {
        line.refuse("as many targets as inputs",
                    fmt::format("{} targets, {} inputs", wanted.size(), in.size()),
                    "give each input a target, -1 for none");
      }
      out.inputs_.insert(out.inputs_.end(), in.begin(), in.end());
      out.targets_.insert(out.targets_.end(), wanted.begin(), wanted.end());
    } else if (has_only(object, "prompt", "target") && object["prompt"].is_array() &&
               object["target"].is_array()) {
      if (object["prompt"].empty()) {
        line.refuse("at least one id in \"prompt\"", "an empty list", "begin it with the BOS id");
      }
      note_continued();
      continued(ids_of(object["prompt"], "prompt", 0, inputs, kInputs, line),
                ids_of(object["target"], "target", 0, std::min(inputs, classes),
                       classes < inputs ? of_classes : kInputs, line),
                &out.inputs_, &out.targets_);
    } else if (has_only(object, "prompt", "target") && object["prompt"].is_string() &&
               object["target"].is_string()) {
      if (tokenizer == nullptr) {
        line.refuse("ids, without a tokenizer", "text", "name one: \"tokenizer\": FILE");
      }
      const auto [prompt, target] = encoded(object["prompt"], object["target"], *tokenizer);
      note_continued();
      continued(prompt, target, &out.inputs_, &out.targets_);
    } else {
      line.refuse(
          "{\"prompt\", \"target\"}, both text or both ids, or {\"input\", \"targets\"} in ids",
          abbreviate(object.dump()), "see bamtrain help tasks");
    }
    add();
  };
  while (reader.next(&text)) take();
  if (reader.offset() < file.bytes()) {  // the last line may lack its newline
    std::string rest(static_cast<size_t>(file.bytes() - reader.offset()), '\0');
    file.read(reader.offset(), rest.data(), std::ssize(rest));
    text = rest;
    take();
  }
  if (out.ends_.empty()) {
    throw Error::fault(ExitCode::data, path, "no examples", "see bamtrain help tasks");
  }
  return out;
}

void ExampleFile::get(int64_t n, Example* out) const {
  require(n >= 0 && n < size(), "an example of the file");
  out->inputs.assign(inputs_.begin() + begin(n), inputs_.begin() + end(n));
  out->targets.assign(targets_.begin() + begin(n), targets_.begin() + end(n));
}

int64_t ExampleFile::bytes() const {
  return static_cast<int64_t>((inputs_.capacity() + targets_.capacity()) * sizeof(int32_t) +
                              ends_.capacity() * sizeof(int64_t));
}

}  // namespace bamtrain
