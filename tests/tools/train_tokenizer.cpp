#include "data_tools/train_tokenizer.h"

#include <sentencepiece_processor.h>

#include <string>

#include "catch.h"
#include "data/tokenizer.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

struct Case {
  TemporaryFolder folder;
  TrainTokenizerOptions options;

  explicit Case(const std::string& text) {
    write_bytes(folder.file("in.txt"), text);
    options.input.paths = {folder.file("in.txt")};
    options.input.kind = DocumentKind::file;
    options.output = folder.file("out.model");
    options.vocab = 450;
  }
  TrainTokenizerReport run() {
    return without_log([&](std::FILE* log) { return train_tokenizer(options, log); });
  }
};

std::string sample_text() {
  std::string text;
  for (const std::string& s : sample_sentences()) text += s + "\n";
  return text;
}

TEST_CASE("a trained tokenizer has the vocabulary, ids and habits that are promised") {
  Case c(sample_text() + "Room 2024  has   spaces\tand tabs. The caf\u00e9 has caf\u00e9s.\n");
  c.run();
  const Tokenizer t = Tokenizer::open(c.options.output);
  CHECK(t.vocab() == 450);
  CHECK(t.bos() == 1);
  CHECK(t.eos() == 2);
  CHECK(t.is_exact());
  CHECK(t.piece(0) == "<unk>");
  CHECK(t.piece(1) == "<s>");
  CHECK(t.piece(2) == "</s>");
  CHECK(t.piece(3) == "<0x00>");
  CHECK(t.piece(258) == "<0xFF>");
  for (int32_t id = 259; id < t.vocab(); ++id) {
    const std::string piece = t.piece(id);
    INFO(piece);
    CHECK(piece.find_first_of("\n\t") == std::string::npos);
    const bool digit = piece.find_first_of("0123456789") != std::string::npos;
    CHECK((!digit || piece.size() == 1));
    const size_t sign = piece.rfind("\u2581");  // a space only at the start, or only spaces
    CHECK((sign == std::string::npos || sign == 0 || piece.size() == sign + 3));
  }
  // A word at the start has the same ids as inside.
  const auto alone = t.encode("river"), within = t.encode("a river");
  CHECK(std::equal(alone.rbegin(), alone.rend(), within.rbegin()));
}

TEST_CASE("any text comes back from a trained tokenizer") {
  Case c(sample_text());
  c.run();
  const Tokenizer t = Tokenizer::open(c.options.output);
  for (const std::string text :
       {"The river, crossed.", "  two  spaces ", "\n\nlines\r\n\t",
        "na\u00efve \u65e5\u672c\u8a9e \U0001F389", "\u00bd \ufb01 \u2160", " "}) {
    CHECK(t.decode(t.encode(text)) == text);
  }
}

TEST_CASE("the same text gives the same model, lines drawn or not") {
  for (int64_t sample : {int64_t{100'000'000}, int64_t{6'000}}) {
    Case a(sample_text()), b(sample_text());
    a.options.sample_bytes = b.options.sample_bytes = sample;
    a.options.vocab = b.options.vocab = 400;
    const TrainTokenizerReport report = a.run();
    b.run();
    CHECK(read_bytes(a.options.output) == read_bytes(b.options.output));
    CHECK(report.sample_bytes <= sample);
    // Up to one line short of the limit, or the whole text without its newlines.
    CHECK(report.sample_bytes > std::min<int64_t>(sample - 100, report.bytes - 217));
  }
}

TEST_CASE("lines are drawn from the whole text, not from its start") {
  std::string text = sample_text();
  const size_t half = text.size();
  for (const std::string& s : sample_sentences()) text += "zyx " + s + "\n";
  Case c(text);
  c.options.sample_bytes = static_cast<int64_t>(half / 2);
  c.options.vocab = 350;
  c.run();
  sentencepiece::SentencePieceProcessor p;
  REQUIRE(p.Load(c.options.output).ok());
  CHECK(p.PieceToId("\u2581zyx") != p.unk_id());
}

TEST_CASE("a text without a space in a hundred thousand characters can be trained on") {
  std::string text = sample_text();
  for (int i = 0; i < 30'000; ++i) text += "qzj";
  for (int i = 0; i < 20'000; ++i) text += "\u00e9";
  Case c(text);
  c.run();
  sentencepiece::SentencePieceProcessor p;
  REQUIRE(p.Load(c.options.output).ok());
  CHECK(p.PieceToId("qzj") != p.unk_id());
  CHECK(p.PieceToId("\u00e9") != p.unk_id());
}

TEST_CASE("vocabularies that the text cannot fill or that cannot hold it are refused") {
  Case c(sample_text());
  c.options.vocab = 30'000;
  CHECK(contains(error_of(ExitCode::data, [&] { c.run(); }), "--vocab 30000"));
  c.options.vocab = 260;
  CHECK(contains(error_of(ExitCode::data, [&] { c.run(); }), "--vocab 260"));
  CHECK(c.folder.entries() == 1);
}

TEST_CASE("a model file that is there is kept unless it is to be overwritten") {
  Case c(sample_text());
  write_bytes(c.options.output, "mine");
  CHECK(contains(error_of(ExitCode::io, [&] { c.run(); }), "--overwrite"));
  CHECK(read_bytes(c.options.output) == "mine");
  c.options.overwrite = true;
  c.run();
  CHECK(Tokenizer::open(c.options.output).vocab() == 450);
}

TEST_CASE("text without a visible character is refused") {
  Case c(" \n\n");
  CHECK(contains(error_of(ExitCode::data, [&] { c.run(); }), "visible"));
}

}  // namespace
}  // namespace bamtrain
