#include "data_tools/parquet_reader.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "data_tools/inputs.h"
#include "tools/support.h"
#include "tools/tokenizing.h"

namespace bamtrain {
namespace {

using namespace testing;

/// A reader's texts, with nulls as "".
std::vector<std::string> texts_from(ParquetReader* reader) {
  std::vector<std::string> texts;
  RawDocument d;
  while (reader->next(&d)) texts.push_back(d.text);
  return texts;
}

/// A process that writes what these Python statements write: `w(letter, a, b, c, bytes)`.
ParquetReader::Command saying(const std::string& statements) {
  return {
      "python3", "-c",
      "import os, struct, sys, signal\n"
      "column, part, parts, *files = sys.argv[1:]\n"
      "part, parts = int(part), int(parts)\n"
      "def w(letter, a=0, b=0, c=0, data=b''):\n"
      "    sys.stdout.buffer.write(struct.pack('<cQQQ', letter, a, b, c) + data)\n"
      "def rows(*texts):\n"
      "    lengths = [-1 if t is None else len(t) for t in texts]\n"
      "    data = b''.join(t or b'' for t in texts)\n"
      "    w(b'B', len(texts), len(data), 0, struct.pack(f'<{len(texts)}i', *lengths) + data)\n" +
          statements + "\nsys.stdout.buffer.flush()\n"};
}

bool have_python() { return std::system("command -v python3 > /dev/null") == 0; }

TEST_CASE("row groups of several processes come in their order, rows with their numbers") {
  if (!have_python()) return;
  // Five row groups in two files, divided among any number of processes.
  const auto command = saying(
      "for n in range(5):\n"
      "    if n % parts != part: continue\n"
      "    w(b'G', n // 3, n % 3, 10 * n)\n"
      "    rows(b'%d' % n, None, b'of ' + column.encode())\n"
      "    rows()\n"
      "    w(b'D')\n"
      "w(b'E', 5)");
  for (const int processes : {1, 2, 3, 7}) {
    ParquetReader reader({"a.parquet", "b.parquet"}, "text", processes, 100, command);
    std::vector<int64_t> lines, files;
    std::string all;
    RawDocument d;
    while (reader.next(&d)) {
      all += d.text + "|";
      lines.push_back(d.line);
      files.push_back(static_cast<int64_t>(reader.file()));
    }
    CHECK(all == "0||of text|1||of text|2||of text|3||of text|4||of text|");
    CHECK(lines == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6});
    CHECK(files == std::vector<int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
    CHECK(reader.taken() == 40);
  }
}

TEST_CASE(
    "a reader that ends in mid-file, or says what it cannot mean, is an error with its place") {
  if (!have_python()) return;
  const auto message = [](const std::string& statements, ExitCode code) {
    ParquetReader reader({"a.parquet", "b.parquet"}, "text", 1, 10, saying(statements));
    return error_of(code, [&] { texts_from(&reader); });
  };
  const std::string group = "w(b'G', 1, 7, 0); rows(b'x')\n";
  std::string m = message(group + "sys.stdout.buffer.flush(); os.kill(os.getpid(), signal.SIGKILL)",
                          ExitCode::data);
  CHECK(contains(m, "b.parquet: row group 7"));
  CHECK(contains(m, "ended by signal 9"));
  m = message(group + "sys.stdout.buffer.flush(); raise RuntimeError('no room')", ExitCode::data);
  CHECK(contains(m, "row group 7"));
  CHECK(contains(m, "ended with exit code 1: RuntimeError: no room"));
  m = message(group + "w(b'D'); w(b'E', 2)", ExitCode::data);
  CHECK(contains(m, "the end after 2 row groups"));
  m = message("w(b'F', 6, 18, 0, b'a.parquet\\0x\\0y\\0look')", ExitCode::io);
  CHECK(contains(m, "a.parquet: expected x, found y; look"));
  m = message("w(b'F', 9, 18, 0, b'a.parquet\\0x\\0y\\0look')", ExitCode::device);
  m = message("w(b'G', 2)", ExitCode::data);
  CHECK(contains(m, "not asked for"));
  m = message(group + "w(b'B', 1, 5, 0, b'\\2\\0\\0\\0hello')", ExitCode::data);
  CHECK(contains(m, "another size"));
  m = message(group + "w(b'B', 1 << 60, 5)", ExitCode::data);
  CHECK(contains(m, "impossible size"));
  m = message(group + "w(b'?')", ExitCode::data);
  m = message(group + "rows(b'longer than ten')", ExitCode::data);
  CHECK(contains(m, "row 2: expected at most 10 bytes"));
}

TEST_CASE("where there is no Python, or no pyarrow, the command that installs it is named") {
  const std::string m = error_of(ExitCode::device, [] {
    ParquetReader reader({"a.parquet"}, "text", 1, 10, {"no-such-python"});
    texts_from(&reader);
  });
  CHECK(contains(m, "pip install pyarrow"));
  if (!have_python()) return;
  const TemporaryFolder folder;
  write_bytes(folder.file("pyarrow.py"), "raise ImportError('none here')\n");
  const char* before = std::getenv("PYTHONPATH");
  const std::string kept = before ? before : "";
  ::setenv("PYTHONPATH", folder.path().c_str(), 1);
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  const std::string other = error_of(ExitCode::device, [] {
    ParquetReader reader({"a.parquet"}, "text", 1, 10);
    texts_from(&reader);
  });
  ::setenv("PYTHONPATH", kept.c_str(), 1);
  CHECK(contains(other, "none here"));
  CHECK(contains(other, "-m pip install pyarrow"));
}

bool have_pyarrow() {
  if (std::system("python3 -c 'import pyarrow' 2> /dev/null") == 0) return true;
  std::printf("skipped: python3 has no pyarrow\n");
  return false;
}

/// Runs statements with pyarrow in a folder.
void with_pyarrow(const TemporaryFolder& folder, const std::string& statements) {
  write_bytes(
      folder.file("make.py"),
      "import json, pyarrow as pa, pyarrow.parquet as pq\n"
      "texts = ['a road', None, '', 'caf\\u00e9 \\u4e16\\u754c\\r\\n', 'x' * 3000] * 700\n" +
          statements);
  REQUIRE(std::system(("cd " + folder.path() + " && python3 make.py").c_str()) == 0);
}

std::vector<std::string> expected_texts() {
  std::vector<std::string> all;
  for (int n = 0; n < 700; ++n) {
    for (const std::string& t :
         {std::string("a road"), std::string(), std::string(),
          std::string("caf\u00e9 \u4e16\u754c\r\n"), std::string(3000, 'x')}) {
      all.push_back(t);
    }
  }
  return all;
}

TEST_CASE("a reader that writes many errors does not stand still, and its last line is told") {
  const auto reader = [](const std::string& end) {
    const std::string noise =
        "import sys, struct\nsys.stderr.write('x' * (1 << 20))\n"
        "sys.stderr.write('\\nthe last line\\n')\nsys.stderr.flush()\n";
    return ParquetReader({"a.parquet"}, "text", 1, 1 << 20, {"python3", "-c", noise + end});
  };
  RawDocument document;
  CHECK_FALSE(
      reader("sys.stdout.buffer.write(struct.pack('<cQQQ', b'E', 0, 0, 0))").next(&document));
  const std::string said = error_of(ExitCode::data, [&] { reader("sys.exit(3)").next(&document); });
  CHECK(contains(said, "exit code 3: the last line"));
}

TEST_CASE("what pyarrow writes is read: codecs, page versions, row groups, types of texts") {
  if (!have_pyarrow()) return;
  const TemporaryFolder folder;
  with_pyarrow(folder,
               "n = 0\n"
               "def put(column, **how):\n"
               "    global n\n"
               "    table = pa.table({'id': list(range(len(column))), 'text': column,\n"
               "                      'tags': [[1]] * len(column)})\n"
               "    pq.write_table(table, f'{n}.parquet', **how)\n"
               "    n += 1\n"
               "for codec in ['none', 'snappy', 'gzip', 'brotli', 'lz4', 'zstd']:\n"
               "    for version in ['1.0', '2.0']:\n"
               "        put(pa.array(texts), compression=codec, data_page_version=version)\n"
               "for size in [1, 7, 1024, 5000]:\n"
               "    put(pa.array(texts), row_group_size=size)\n"
               "put(pa.array(texts, pa.large_string()), row_group_size=100)\n"
               "put(pa.array(texts).dictionary_encode(), row_group_size=100)\n"
               "put(pa.array(texts), use_dictionary=False, row_group_size=333)\n"
               "plain = [None if text is None else text.encode() for text in texts]\n"
               "put(pa.array(plain, pa.binary()), row_group_size=100)\n"
               "put(pa.array(plain, pa.large_binary()), use_dictionary=False)\n"
               "put(pa.array(plain, pa.binary()).dictionary_encode(), row_group_size=100)\n"
               "open('count', 'w').write(str(n))\n");
  const int count = std::stoi(read_bytes(folder.file("count")));
  CHECK(count == 22);
  const std::vector<std::string> expected = expected_texts();
  for (int n = 0; n < count; ++n) {
    for (const int processes : {1, 3}) {
      INFO(n << ", " << processes << " processes");
      ParquetReader reader({folder.file(std::to_string(n) + ".parquet")}, "text", processes,
                           1 << 20);
      CHECK((texts_from(&reader) == expected));  // in parentheses: not printed
    }
  }
}

TEST_CASE("columns without texts, and files that were cut or flipped, are refused by name") {
  if (!have_pyarrow()) return;
  const TemporaryFolder folder;
  with_pyarrow(
      folder,
      "pq.write_table(pa.table({'a': [1, 2], 'list': [['x'], ['y']],\n"
      "                         'struct': [{'x': 'y'}, {'x': 'z'}]}), 'other.parquet')\n"
      "pq.write_table(pa.table({'text': [str(n * n) for n in range(9000)]}), 'good.parquet',"
      " write_page_checksum=True)\n"
      "data = open('good.parquet', 'rb').read()\n"
      "open('cut.parquet', 'wb').write(data[:len(data) // 2])\n"
      "open('flipped.parquet', 'wb').write(data[:9000] + bytes([data[9000] ^ 1])"
      " + data[9001:])\n"
      "pq.write_table(pa.Table.from_arrays([pa.array(['a']), pa.array(['b'])], ['text', 'text']),"
      " 'two.parquet')\n"
      "open('empty.parquet', 'wb')\n");
  const auto message = [&](const std::string& file, const std::string& column) {
    return error_of(ExitCode::data, [&] {
      ParquetReader reader({folder.file(file)}, column, 2, 1 << 20);
      texts_from(&reader);
    });
  };
  CHECK(contains(message("other.parquet", "text"), "only a, list, struct; choose the column"));
  CHECK(contains(message("other.parquet", "a"), "found int64"));
  CHECK(contains(message("other.parquet", "list"), "found list<"));
  CHECK(contains(message("other.parquet", "struct"), "found struct<"));
  CHECK(contains(message("cut.parquet", "text"), "cut.parquet: expected an intact"));
  CHECK(contains(message("flipped.parquet", "text"), "flipped.parquet: row group 0: expected an"));
  CHECK(contains(message("two.parquet", "text"), "one column \"text\", found 2 of that name"));
  ParquetReader missing({folder.file("none.parquet")}, "text", 1, 1 << 20);
  CHECK(contains(error_of(ExitCode::io, [&] { texts_from(&missing); }), "none.parquet"));
}

TEST_CASE("a column of bytes without a type is text, whose bad UTF-8 is dealt with as asked") {
  if (!have_pyarrow()) return;
  const TemporaryFolder folder;
  with_pyarrow(folder,
               "pq.write_table(pa.table({'text': pa.array([b'the hills', b'a\\xFFb', None],"
               " pa.binary())}), 'a.parquet')\n");
  TokenizeOptions o = options_for(folder, "", DocumentKind::line);
  o.input.paths = {folder.file("a.parquet")};
  CHECK(contains(error_of(ExitCode::data, [&] { run(o); }),
                 "a.parquet: row:2: not valid UTF-8: byte 0xFF"));
  o.input.invalid_utf8 = InvalidUtf8::skip;
  const TextCounts skipped = run(o).counts;
  CHECK(skipped.skipped == 1);
  CHECK(skipped.empty == 1);
  o.overwrite = true;
  o.input.invalid_utf8 = InvalidUtf8::replace;
  const TokenizeReport replaced = run(o);
  CHECK(replaced.counts.replaced == 1);
  CHECK(replaced.train.documents == 2);
}

TEST_CASE("parquet and JSON lines of the same documents make the same shards, to the byte") {
  if (!have_pyarrow()) return;
  const TemporaryFolder folder;
  with_pyarrow(folder,
               "for n in range(3):\n"
               "    part = [(t or '-') + str(n) for t in texts]\n"
               "    pq.write_table(pa.table({'text': part}), f'{n}.parquet', row_group_size=500)\n"
               "    open(f'{n}.jsonl', 'w').write(''.join(json.dumps({'text': t}) + '\\n' for t in "
               "part))\n");
  std::vector<std::map<std::string, std::string>> shards;
  for (const std::string suffix : {".jsonl", ".parquet"}) {
    TokenizeOptions o;
    for (int n = 0; n < 3; ++n) o.input.paths.push_back(folder.file(std::to_string(n) + suffix));
    o.tokenizer = small_tokenizer(folder);
    o.output = folder.file("out" + suffix);
    o.threads = suffix == ".jsonl" ? 1 : 33;  // several readers
    run(o);
    shards.push_back(hashes(o.output));
  }
  CHECK(shards[0] == shards[1]);
  // In one call, alternating with other kinds of text.
  TokenizeOptions o;
  o.input.paths = {folder.file("0.parquet"), folder.file("1.jsonl"), folder.file("2.parquet")};
  o.tokenizer = small_tokenizer(folder);
  o.output = folder.file("mixed");
  run(o);
  CHECK(hashes(o.output) == shards[0]);
}

TEST_CASE("modules of the user's folder are not the reader's") {
  if (!have_pyarrow()) return;
  const TemporaryFolder folder;
  with_pyarrow(folder, "pq.write_table(pa.table({'text': ['a', 'b']}), 'a.parquet')\n");
  write_bytes(folder.file("struct.py"), "raise RuntimeError('shadowed')\n");
  write_bytes(folder.file("tokenize.py"), "raise RuntimeError('shadowed')\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  ParquetReader reader({"a.parquet"}, "text", 1, 1 << 20);
  const std::vector<std::string> texts = texts_from(&reader);
  fs::current_path(before);
  CHECK(texts.size() == 2);
}

}  // namespace
}  // namespace bamtrain
