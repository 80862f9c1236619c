"""Word alignment: tokens of parallel text, statistics of word pairs, features of links, the publisher's files."""
