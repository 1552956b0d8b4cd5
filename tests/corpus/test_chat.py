"""The reader of CHAT."""

import zipfile

import pytest

from babyssa.corpus import lines as lines_module
from babyssa.corpus import read_utterances
from babyssa.corpus.chat import TYPE_OF_TERMINATOR, parse_main_tier
from babyssa.errors import DataError


def transcript(*tiers, age="2;06.10", role="Target_Child"):
    head = [
        "@UTF8",
        "@Begin",
        "@Languages:\teng",
        f"@Participants:\tCHI Amy {role} , MOT Mother , FAT Father",
        f"@ID:\teng|Here|CHI|{age}|female|||{role}|||",
        "@ID:\teng|Here|MOT|||||Mother|||",
        "@ID:\teng|Here|FAT|||||Father|||",
    ]
    return "\n".join([*head, *tiers, "@End", ""])


@pytest.fixture
def read(tmp_path):
    def read(*tiers, **header):
        path = tmp_path / "amy.cha"
        path.write_text(transcript(*tiers, **header), encoding="utf-8")
        return list(read_utterances(path))

    return read


@pytest.mark.parametrize(
    ("tier", "words"),
    [
        ("<put that> [//] put that there .", "put that put that there"),
        ("I [/] I [x 3] think so .", "I I think so"),
        ("wontcha [: won't you] come ?", "wontcha come"),
        ("&hmm ?", "hm"),
        ("Hmm &um &-uh &+wh &~ba here .", "hm um uh wh ba here"),
        ("&=laughs &=imit:dog no &*CHI:yes .", "no"),
        ("I wan(t) it (be)cause .", "I want it because"),
        ("o:h dog:gie !", "oh doggie"),
        ("a woof+(woof) for Big_Bird .", "a woof+woof for Big_Bird"),
        ("moink@o toys@q aht@i hola@s:spa .", "moink toys aht hola"),
        ("boom_boom@o .", "boom_boom"),
        ("0they don't 0 fit .", "don't fit"),
        ("0 .", ""),
        ("well (.) no (..) wait (1.5) yes .", "well no wait yes"),
        ('+" hello , dear \u201cfriend\u201d ; yes .', "hello dear friend yes"),
        ("+< no +^ yes .", "no yes"),
        ("xxx come .", "xxx come"),
        ("here [=! laughs] it [?] is [!] [+ imit] .", "here it is"),
        ("see \x15123_456\x15 it . \x15998179_1002753\x15", "see it"),
        ("it's (it')s .", "it's it's"),
        ("no end mark", "no end mark"),
        ("wai:t \u2191now .", "wait now"),
        ("your pj-s .", "your pj-s"),
        # Time marks whose control characters have been lost.
        ("is it there ? 1200_2443", "is it there"),
        ("is it there ?1200_2443", "is it there"),
        ("is it \u20221200_2443\u2022 there ?", "is it there"),
        ('is it ? %snd:"boys85"_7349_8338', "is it"),
        ("a 1_2_3 Route_66 .", "a 1_2_3 Route_66"),
        # Pauses of any length, and the pauses of old files.
        ("look at that (1:30.5) big dog .", "look at that big dog"),
        ("a (1:02:03) b (2.) c (.5) .", "a b c"),
        ("# well #long #0_5 un#happy .", "well unhappy"),
        # Overlaps with an index.
        ("\u23082 yes \u23092 \u230a2 no \u230b2 .", "yes no"),
        ("\u23083yes\u23093 no .", "yes no"),
        # Signs of conversation analysis, stress, parts of speech.
        ("fun$n time$n:prop bow@s:fra$n .", "fun time bow"),
        ("\u02c8ba\u02ccna\u2191na \u2193dog\u02d0gie .", "banana doggie"),
        ("he \u03abis tired\u03ab ha\u1f29ha\u1f29 .", "he is tired haha"),
        ("\u03a0\u03a1\u039f\u03ab\u03a0\u039f .", "\u03a0\u03a1\u039f\u03ab\u03a0\u039f"),
    ],
)
def test_the_words_are_those_of_childes_db(tier, words):
    assert parse_main_tier(tier)[0] == words


@pytest.mark.parametrize(
    ("tier", "words"),
    [
        ("he said 'oh dear' .", "he said oh dear"),
        ("he said \u2018oh dear\u2019 to me .", "he said oh dear to me"),
        ("' oh dear ' he said .", "oh dear he said"),
        ("`oh dear' he said .", "oh dear he said"),
        ("'yes' and 'no' .", "yes and no"),
        ("he said 'round and round' .", "he said round and round"),
        ("he said 'where is it ?' .", "he said where is it"),
        ("'look at the dogs' bowl' he said .", "look at the dogs' bowl he said"),
        ("'yes' and the boys' room .", "yes and the boys' room"),
        ("he said 'I like the dogs' .", "he said I like the dogs"),
        ("the boys' room isn't 'em .", "the boys' room isn't 'em"),
        ("'cause I'm goin' home 'cause .", "'cause I'm goin' home 'cause"),
        ("rock 'n' roll o'clock .", "rock 'n' roll o'clock"),
        ("l\u2019eau d\u2019ici .", "l\u2019eau d\u2019ici"),
    ],
)
def test_pairs_of_single_quotes_go_and_apostrophes_stay(tier, words):
    assert parse_main_tier(tier)[0] == words


@pytest.mark.parametrize(
    "word",
    [
        "\u0928\u092e\u0938\u094d\u0924\u0947",
        "\u0e19\u0e49\u0e33",
        "e\u0301te\u0301",
        "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "col\u00b7legi",
    ],
)
def test_combining_marks_and_joiners_belong_to_their_word(word):
    assert parse_main_tier(f"{word} {word}\u2191 .") == (f"{word} {word}", "declarative")


@pytest.mark.parametrize("tier", ["is it there ? 1200_2443", "'is it there ?'", '"is it there ?"'])
def test_the_terminator_is_found_before_a_bare_time_mark_or_a_quote(tier):
    assert parse_main_tier(tier) == ("is it there", "question")


@pytest.mark.parametrize(("terminator", "type"), TYPE_OF_TERMINATOR.items())
@pytest.mark.parametrize("after", ["", " [+ bch]", " \x151_2\x15"])
def test_the_terminator_becomes_the_type(terminator, type, after):
    assert parse_main_tier(f"come here {terminator}{after}") == ("come here", type)
    assert parse_main_tier(f"come here{terminator}{after}") == ("come here", type)


def test_roles_age_and_order_come_from_the_transcript(read):
    utterances = read("*MOT:\tlook here .", "%com:\tpoints", "*CHI:\tno .", "*FAT:\tyes , you", "\tdo !")
    assert [u.role for u in utterances] == ["Mother", "Target_Child", "Father"]
    assert [u.text for u in utterances] == ["look here", "no", "yes you do"]
    assert [u.order for u in utterances] == [1, 2, 3]
    assert {u.age for u in utterances} == {30 * 30.4375 + 10}


@pytest.mark.parametrize(
    ("age", "days"),
    [
        ("1;8.", 20 * 30.4375),
        ("1;08.", 20 * 30.4375),
        ("2;00.01", 24 * 30.4375 + 1),
        ("", None),
        ("0;00.00", None),
        ("0;0.", None),
        ("0;00.10", 10),
        ("30", None),
    ],
)
def test_legacy_ages_are_read_and_missing_ones_are_none(read, age, days):
    assert read("*MOT:\tlook here .", age=age)[0].age == days


def test_a_child_that_is_not_the_target_gives_no_age_as_in_childes_db(read):
    assert read("*MOT:\tlook here .", role="Child")[0].age is None


def test_two_target_children_give_no_age_as_in_childes_db(tmp_path):
    path = tmp_path / "twins.cha"
    second = "@ID:\teng|Here|SIS|3;00.|female|||Target_Child|||"
    text = transcript("*MOT:\tlook here .", "*SIS:\tno .").replace(
        "MOT Mother", "SIS Ann Target_Child , MOT Mother"
    )
    text = text.replace("@ID:\teng|Here|MOT", f"{second}\n@ID:\teng|Here|MOT")
    path.write_text(text, encoding="utf-8")
    assert [(u.role, u.age) for u in read_utterances(path)] == [("Mother", None), ("Target_Child", None)]
    path.write_text(text.replace("SIS Ann Target_Child , ", ""), encoding="utf-8")
    assert {u.age for u in read_utterances(path)} == {None}


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_may_end_as_on_any_system(read, tmp_path, end):
    expected = read("*MOT:\tlook here .", "*FAT:\tyes , you", "\tdo !")
    path = tmp_path / "amy.cha"
    path.write_bytes(path.read_bytes().replace(b"\n", end.encode()))
    assert list(read_utterances(path)) == expected


def test_an_undeclared_speaker_is_unidentified_unless_coded_as_the_child(tmp_path):
    path = tmp_path / "x.cha"
    path.write_text(
        "@UTF8\n@Begin\n@Participants:\tMOT Mother\n*CHI:\thi .\n*XYZ:\tyo .\n@End\n", encoding="utf-8"
    )
    assert [u.role for u in read_utterances(path)] == ["Target_Child", "Unidentified"]


def test_a_mor_tier_out_of_step_costs_no_words_and_no_warning(read, recwarn):
    (utterance,) = read("*MOT:\t(wh)oop (.) 0they don't fit !", "%mor:\tv|whoop 0pro|they mod|do~neg|not v|fit !")
    assert (utterance.text, utterance.type) == ("whoop don't fit", "imperative_emphatic")
    assert not recwarn.list


def test_a_zip_gives_the_transcripts_in_it_in_order_of_name(tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b/two.cha", transcript("*MOT:\ttwo .", age="1;00."))
        archive.writestr("a/one.cha", transcript("*MOT:\tone ."))
        archive.writestr("a/readme.txt", "not a transcript")
        archive.writestr("__MACOSX/._one.cha", b"\x00\x05\x16")
    utterances = list(read_utterances(path))
    assert [u.text for u in utterances] == ["one", "two"]
    assert [u.transcript.rpartition("!")[2] for u in utterances] == ["a/one.cha", "b/two.cha"]


def test_a_zip_member_never_reaches_the_file_system(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    with zipfile.ZipFile(inside / "evil.zip", "w") as archive:
        archive.writestr("../escaped.cha", transcript("*MOT:\thello there ."))
        archive.writestr("/tmp/babyssa-escaped.cha", transcript("*MOT:\thello there ."))
    assert [u.text for u in read_utterances(inside / "evil.zip")] == ["hello there"] * 2
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["evil.zip"]


def test_a_transcript_that_is_too_large_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "TRANSCRIPT_LIMIT", 1000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.cha", "a" * 1001)
    with pytest.raises(DataError, match="larger than 1,000 bytes") as caught:
        list(read_utterances(path))
    assert caught.value.path.name == "bomb.zip!big.cha"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("x.cha", b"just some words\n", "@Begin"),
        ("x.cha", b"", "@Begin"),
        ("x.cha", b"@UTF8\n@Begin\n*MOT:\tcaf\xe9 .\n", "not UTF-8"),
        ("x.zip", b"PK nothing", "zip archive"),
    ],
)
def test_what_is_no_transcript_is_an_error(tmp_path, name, content, what):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        list(read_utterances(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)
    if "UTF-8" in what:
        assert caught.value.line == 3


def test_a_zip_without_transcripts_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match="holds no CHAT transcript"):
        list(read_utterances(tmp_path / "x.zip"))
